"""A small tree in the shape of TFLM's, written for the tests."""

from pathlib import Path

_RESOLVER = """
#include "tensorflow/lite/micro/kernels/micro_ops.h"
#include "tensorflow/lite/micro/kernels/conv.h"
namespace tflite {
template <unsigned int n>
class MicroMutableOpResolver : public MicroOpResolver {
  TfLiteStatus AddCustom(const char* name, const TFLMRegistration* registration) { return kTfLiteOk; }
  // TfLiteStatus AddGone() { return AddCustom("Gone", Register_GONE()); }
  TfLiteStatus AddConv2D(const TFLMRegistration& registration = Register_CONV_2D()) {
    return AddBuiltin(BuiltinOperator_CONV_2D, registration, ParseConv2D);
  }
  TfLiteStatus AddCumSum(
      const TFLMRegistration& registration = Register_CUMSUM()) {
    return AddBuiltin(BuiltinOperator_CUMSUM, registration, ParseCumsum);
  }
  TfLiteStatus AddResize() {
    return AddBuiltin(BuiltinOperator_RESIZE, Register_RESIZE(), ParseResize);
  }
  TfLiteStatus AddRfft(const TFLMRegistration* registration = tflite::tflm_signal::Register_RFFT()) {
    return AddCustom("SignalRfft", registration);
  }
  TfLiteStatus AddEthosU() {
    TFLMRegistration* registration = tflite::Register_ETHOSU();
    if (registration) { return AddCustom(tflite::GetString_ETHOSU(), registration); }
    return kTfLiteOk;
  }
 private:
  TfLiteStatus AddBuiltin(tflite::BuiltinOperator op, const TFLMRegistration& r, Parser parser) { return kTfLiteOk; }
};
}
"""

_CONV_H = """
namespace tflite {
TFLMRegistration Register_CONV_2D();
TfLiteStatus ConvPrepare(Context* context);
#if defined(CMSIS_NN)
TFLMRegistration Register_CONV_2D_INT8();
#else
inline TFLMRegistration Register_CONV_2D_INT8() { return Register_CONV_2D(); }
#endif
}
"""

_FILES = {
    "LICENSE": "licence",
    "tensorflow/lite/micro/micro_mutable_op_resolver.h": _RESOLVER,
    "tensorflow/lite/schema/schema_generated.h": (
        "static_assert(FLATBUFFERS_VERSION_MAJOR == 1 && FLATBUFFERS_VERSION_MINOR == 2 &&"
        " FLATBUFFERS_VERSION_REVISION == 3);\n"
        "enum BuiltinOperator : int32_t {\n  BuiltinOperator_CONV_2D = 3,\n  BuiltinOperator_RESIZE = 97,\n"
        "  BuiltinOperator_CUMSUM = 128,\n  BuiltinOperator_MIN = 3,\n  BuiltinOperator_MAX = 128\n};"
    ),
    "tensorflow/lite/micro/micro_interpreter.h": "class MicroInterpreter { Invoker invoker_; int Invoke(); };",
    "tensorflow/lite/micro/micro_interpreter.cc": (
        '#include "tensorflow/lite/micro/micro_interpreter.h"\n#include "tensorflow/lite/micro/helper.h"\n'
        "int MicroInterpreter::Invoke() { return Help(); }"
    ),
    "tensorflow/lite/micro/helper.h": "int Help();",
    "tensorflow/lite/micro/helper.cc": '#include "tensorflow/lite/micro/helper.h"\nint Help() { return 1; }',
    "tensorflow/lite/micro/helper_test.cc": "int MicroInterpreter::Test() { return 0; }",
    "tensorflow/lite/micro/debug_log.cc": "void MicroInterpreter::Log() { }",
    "tensorflow/lite/micro/kernels/micro_ops.h": (
        "TFLMRegistration Register_CUMSUM();\nTFLMRegistration Register_RESIZE();\nTFLMRegistration* Register_ETHOSU();"
    ),
    "tensorflow/lite/micro/kernels/conv.h": _CONV_H,
    "tensorflow/lite/micro/kernels/conv.cc": (
        '#include "tensorflow/lite/micro/kernels/conv.h"\n'
        "namespace { int Eval() { return 0; } }\n"
        "TFLMRegistration Register_CONV_2D() { return RegisterOp(ConvPrepare, Eval); }"
    ),
    "tensorflow/lite/micro/kernels/conv_common.cc": (
        '#include "tensorflow/lite/micro/kernels/conv.h"\nTfLiteStatus ConvPrepare(Context* context) { return kOk; }'
    ),
    "tensorflow/lite/micro/kernels/cumsum.cc": (
        "namespace { int Eval() { return 0; } }\nTFLMRegistration Register_CUMSUM() { return RegisterOp(Eval); }"
    ),
    "tensorflow/lite/micro/kernels/resize.cc": "TFLMRegistration Register_RESIZE() { return R(); }",
    "tensorflow/lite/micro/kernels/ethosu.cc": (
        'TFLMRegistration* Register_ETHOSU() { return nullptr; }\nconst char* GetString_ETHOSU() { return ""; }'
    ),
    "tensorflow/lite/micro/kernels/ethos_u/ethosu.cc": 'const char* GetString_ETHOSU() { return "ethos-u"; }',
    "tensorflow/lite/micro/kernels/cmsis_nn/conv.cc": (
        '#include "Include/arm_nnfunctions.h"\n#include "tensorflow/lite/micro/kernels/conv.h"\n'
        "TFLMRegistration Register_CONV_2D() { arm_convolve_s8(); return RegisterOp(ConvPrepare); }\n"
        "TFLMRegistration Register_CONV_2D_INT8() { arm_convolve_s8(); return RegisterOp(ConvPrepare); }"
    ),
    "signal/micro/kernels/rfft.h": (
        "namespace tflite { namespace tflm_signal { TFLMRegistration* Register_RFFT();\n"
        "TFLMRegistration* Register_RFFT_INT16(); } }"
    ),
    "signal/micro/kernels/rfft.cc": (
        '#include "signal/micro/kernels/rfft.h"\n#include "signal/src/rfft.h"\n'
        "namespace tflite { namespace tflm_signal {\n"
        "TFLMRegistration* Register_RFFT() { return Make(RfftApply); }\n"
        "TFLMRegistration* Register_RFFT_INT16() { return Make(RfftApply); }\n} }"
    ),
    "signal/src/rfft.h": "void RfftApply();",
    "signal/src/rfft.cc": '#include "rfft.h"\n#include "signal/src/kiss.h"\nvoid RfftApply() { kiss_fftr(); }',
    "signal/src/kiss.h": '#include "kiss_fft.h"',
    "signal/src/kiss.cc": '#include "signal/src/kiss.h"\nnamespace kiss {\n#include "kiss_fft.c"\n}',
}

_DOWNLOADS = {
    "flatbuffers/include/flatbuffers/flatbuffers.h": "",
    "flatbuffers/include/flatbuffers/base.h": (
        "#define FLATBUFFERS_VERSION_MAJOR 1\n#define FLATBUFFERS_VERSION_MINOR 2\n"
        "#define FLATBUFFERS_VERSION_REVISION 3\n"
    ),
    "gemmlowp/fixedpoint/fixedpoint.h": "",
    "ruy/ruy/profiler/instrumentation.h": "",
    "kissfft/kiss_fft.h": "void kiss_fftr();",
    "kissfft/kiss_fft.c": "void kiss_fftr() { }",
    "cmsis/CMSIS/Core/Include/cmsis_compiler.h": "",
    "cmsis_nn/Include/arm_nnfunctions.h": 'extern "C" {\nint arm_convolve_s8(void);\n}',
    "cmsis_nn/Source/arm_convolve_s8.c": '#include "arm_nnfunctions.h"\nint arm_convolve_s8(void) { return 0; }',
    "cmsis_nn/Source/arm_convolve_f16.c": '#include "arm_nnfunctions.h"\nint arm_convolve_s8(void) { return 0; }',
}

SCRIPTS = {
    "tensorflow/lite/micro/tools/make/third_party_downloads.inc": (
        f'GEMMLOWP_URL := "https://github.com/google/gemmlowp/archive/{"1" * 40}.zip"\n'
        f'RUY_URL="https://github.com/google/ruy/archive/{"2" * 40}.zip"\n'
        'OTHER_URL := "https://github.com/foo/bar/archive/refs/tags/v1.zip"\n'
    ),
    "tensorflow/lite/micro/tools/make/flatbuffers_download.sh": (
        '  ZIP_PREFIX="v25.9.23"\n'
        '  FLATBUFFERS_URL="https://github.com/google/flatbuffers/archive/refs/tags/${ZIP_PREFIX}.zip"\n'
    ),
    "tensorflow/lite/micro/tools/make/kissfft_download.sh": (
        'KISSFFT_URL="https://github.com/mborgerding/kissfft/archive/refs/tags/v999.zip"\n'
    ),
    "tensorflow/lite/micro/tools/make/ext_libs/cmsis_download.sh": (
        f'  ZIP_PREFIX="{"3" * 40}"\n'
        '  CMSIS_URL="http://github.com/ARM-software/CMSIS_6/archive/${ZIP_PREFIX}.zip"\n'
        f'  ZIP_PREFIX="{"4" * 40}"\n'
        '  CMSIS_DFP_URL="http://github.com/ARM-software/Cortex_DFP/archive/${ZIP_PREFIX}.zip"\n'
    ),
    "tensorflow/lite/micro/tools/make/ext_libs/cmsis_nn_download.sh": (
        f'ZIP_PREFIX_NN="{"5" * 40}"\n'
        'CMSIS_NN_URL="http://github.com/ARM-software/CMSIS-NN/archive/${ZIP_PREFIX_NN}.zip"\n'
    ),
    "third_party/kissfft/kissfft.patch": "a patch",
}

OUTPUT_OF_CREATE_TREE = "third_party"
MAKE_DOWNLOADS = "tensorflow/lite/micro/tools/make/downloads"


def write_files(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def write_tree(root: Path, *, downloads: str = MAKE_DOWNLOADS, without: tuple[str, ...] = ()) -> Path:
    """Write the tree with its third-party packages under `downloads`; leave some files out."""
    files = {**_FILES, **SCRIPTS, **{f"{downloads}/{name}": text for name, text in _DOWNLOADS.items()}}
    write_files(root, {name: text for name, text in files.items() if not name.startswith(without or "\0")})
    return root


def write_package(folder: Path, package: str) -> None:
    """Write one package as a fetch would leave it."""
    if package == "tflite-micro":
        write_files(folder, {**_FILES, **SCRIPTS})
    else:
        mine = {n.removeprefix(f"{package}/"): t for n, t in _DOWNLOADS.items() if n.startswith(f"{package}/")}
        write_files(folder, mine)
