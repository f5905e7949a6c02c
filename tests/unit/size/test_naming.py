"""Names of symbols for a person; the readable ones are what GNU c++filt prints with --no-params."""

import time

import pytest

from tflm_forge.size.naming import readable_symbol


@pytest.mark.parametrize(
    ("symbol", "readable"),
    [
        ("main", "main"),
        ("__aeabi_dmul", "__aeabi_dmul"),
        ("_Z3fooi", "foo"),
        ("_ZN6tflite16MicroInterpreter15AllocateTensorsEv", "tflite::MicroInterpreter::AllocateTensors"),
        ("_ZTVN6tflite18MicroErrorReporterE", "vtable for tflite::MicroErrorReporter"),
        ("_ZTIN6tflite18MicroErrorReporterE", "typeinfo for tflite::MicroErrorReporter"),
        ("_ZN6tflite18MicroErrorReporterD0Ev", "tflite::MicroErrorReporter::~MicroErrorReporter"),
        ("_ZN6tflite18MicroErrorReporterC2Ev", "tflite::MicroErrorReporter::MicroErrorReporter"),
        ("_ZNK11flatbuffers5Table8GetFieldEtt", "flatbuffers::Table::GetField"),
        ("_ZdlPvj", "operator delete"),
        ("_ZN5forge9FrameSinklsEPKc", "forge::FrameSink::operator<<"),
        ("_ZZ7__errnoE5error", "__errno::error"),
        ("_ZSt9terminatev", "std::terminate"),
        ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector::push_back"),
    ],
)
def test_names_as_cxxfilt_has_them(symbol: str, readable: str) -> None:
    assert readable_symbol(symbol) == readable


@pytest.mark.parametrize(
    ("symbol", "readable"),
    [
        # Template arguments and unnamed namespaces say little and take much room.
        ("_ZN6tflite22MicroMutableOpResolverILj7EE7AddConvEv", "tflite::MicroMutableOpResolver::AddConv"),
        ("_ZN5forge12_GLOBAL__N_14HookILi8EEE12TfLiteStatusv", "forge::Hook"),
        ("_ZN6tflite12_GLOBAL__N_17PrepareEP13TfLiteContext.lto_priv.3", "tflite::Prepare.lto_priv.3"),
        ("_ZN3fooINS_3barIXadL_Z3bazvEEEEE3runEv", "foo::run"),
    ],
)
def test_names_without_what_says_little(symbol: str, readable: str) -> None:
    assert readable_symbol(symbol) == readable


@pytest.mark.parametrize(
    "symbol",
    ["_Z", "_ZN", "_ZN3fo", "_ZN99999999999999999999fooEv", "_ZNI", "_ZZZZZZZZ", "_ZN0E", "_ZTh", "_ZN3fooI", "_ZNSt"],
)
def test_damaged_names_come_back_as_they_are(symbol: str) -> None:
    assert readable_symbol(symbol) == symbol


@pytest.mark.parametrize(
    "symbol", ["_ZN" + "I" * 100_000, "_Z" * 50_000, "_ZN" + "3fooI" * 20_000 + "E", "_ZTv" * 30_000]
)
def test_hostile_names_take_no_time(symbol: str) -> None:
    start = time.process_time()
    assert len(readable_symbol(symbol)) <= len(symbol)
    assert time.process_time() - start < 2
