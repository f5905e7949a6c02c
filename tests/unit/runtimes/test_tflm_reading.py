"""Reading a tree: Add methods, kernel sets, sources, pins; on small trees in TFLM's shape."""

from pathlib import Path

import pytest

from tests.unit.runtimes.small_tree import OUTPUT_OF_CREATE_TREE, write_files, write_tree
from tflm_forge.errors import ToolError, UsageError
from tflm_forge.runtimes.tflm.pins import TFLM_REPOSITORY, parse_commits, read_pins, tflm_pin
from tflm_forge.runtimes.tflm.reading import read_tree
from tflm_forge.runtimes.tflm.tree import Tree, locate_packages

KERNELS = "tflite-micro/tensorflow/lite/micro/kernels"


def open_tree(root: Path) -> Tree:
    return Tree(version="small", folders=locate_packages(root))


def test_methods_are_read_with_code_name_and_argument(tmp_path: Path) -> None:
    plain = read_tree(open_tree(write_tree(tmp_path)))
    rows = {
        op["add_method"]: (op["name"], op["builtin_code"], op["custom_name"], op["argument"], op["function"])
        for op in plain["ops"]
    }
    assert rows == {
        "AddConv2D": ("CONV_2D", 3, "", "reference", "tflite::Register_CONV_2D"),
        "AddCumSum": ("CUMSUM", 128, "", "reference", "tflite::Register_CUMSUM"),
        "AddResize": ("RESIZE", 97, "", "none", "tflite::Register_RESIZE"),
        "AddRfft": ("SignalRfft", 32, "SignalRfft", "pointer", "tflite::tflm_signal::Register_RFFT"),
        "AddEthosU": ("ethos-u", 32, "ethos-u", "none", "tflite::Register_ETHOSU"),
    }


def test_reference_kernels_need_their_common_files_and_no_others(tmp_path: Path) -> None:
    kernels = read_tree(open_tree(write_tree(tmp_path)))["kernel_sets"]["reference"]
    assert kernels["core"] == [
        "tflite-micro/tensorflow/lite/micro/helper.cc",
        "tflite-micro/tensorflow/lite/micro/micro_interpreter.cc",
    ]
    sources = {method: op["sources"] for method, op in kernels["ops"].items()}
    assert sources["AddConv2D"] == [f"{KERNELS}/conv.cc", f"{KERNELS}/conv_common.cc"]
    assert sources["AddCumSum"] == [f"{KERNELS}/cumsum.cc"]
    assert sources["AddRfft"] == [
        "tflite-micro/signal/micro/kernels/rfft.cc",
        "tflite-micro/signal/src/kiss.cc",
        "tflite-micro/signal/src/rfft.cc",
    ]


def test_aliases_are_no_specialised_registrations(tmp_path: Path) -> None:
    sets = read_tree(open_tree(write_tree(tmp_path)))["kernel_sets"]
    assert sets["reference"]["ops"]["AddConv2D"]["registrations"] == {}
    assert sets["cmsis_nn"]["ops"]["AddConv2D"]["registrations"] == {
        "INT8": {
            "function": "tflite::Register_CONV_2D_INT8",
            "header": "tensorflow/lite/micro/kernels/conv.h",
        }
    }
    assert list(sets["reference"]["ops"]["AddRfft"]["registrations"]) == ["INT16"]


def test_a_kernel_sets_file_replaces_the_reference_one_and_pulls_its_library(tmp_path: Path) -> None:
    sources = read_tree(open_tree(write_tree(tmp_path)))["kernel_sets"]["cmsis_nn"]["ops"]["AddConv2D"]["sources"]
    assert sources == [
        "cmsis_nn/Source/arm_convolve_s8.c",
        f"{KERNELS}/cmsis_nn/conv.cc",
        f"{KERNELS}/conv_common.cc",
    ]


def test_a_tree_made_for_one_kernel_set_offers_that_one(tmp_path: Path) -> None:
    root = write_tree(tmp_path, downloads=OUTPUT_OF_CREATE_TREE, without=("tensorflow/lite/micro/kernels/conv.cc",))
    assert list(read_tree(open_tree(root))["kernel_sets"]) == ["cmsis_nn"]


def test_sources_renamed_to_cpp_are_found(tmp_path: Path) -> None:
    root = write_tree(tmp_path)
    for path in list(root.rglob("*.cc")):
        path.rename(path.with_suffix(".cpp"))
    kernels = read_tree(open_tree(root))["kernel_sets"]["reference"]
    assert kernels["ops"]["AddConv2D"]["sources"] == [f"{KERNELS}/conv.cpp", f"{KERNELS}/conv_common.cpp"]


def test_a_tree_without_a_kernel_says_which_op(tmp_path: Path) -> None:
    root = write_tree(tmp_path, without=("tensorflow/lite/micro/kernels/cumsum.cc",))
    with pytest.raises(ToolError, match="CUMSUM"):
        read_tree(open_tree(root))


def test_a_method_that_is_not_understood_is_refused(tmp_path: Path) -> None:
    root = write_tree(tmp_path)
    path = root / "tensorflow/lite/micro/micro_mutable_op_resolver.h"
    odd = "TfLiteStatus AddOdd() { return AddBuiltin(BuiltinOperator_NEW_ONE, Register_ODD(), P); }"
    path.write_text(path.read_text().replace(" private:", f"{odd}\n private:"))
    with pytest.raises(ToolError, match="AddOdd"):
        read_tree(open_tree(root))


def test_a_folder_that_is_no_tree_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no TFLM tree"):
        locate_packages(tmp_path)


def test_packages_that_a_tree_lacks_are_left_out(tmp_path: Path) -> None:
    root = write_tree(tmp_path, without=("tensorflow/lite/micro/tools/make/downloads/ruy",))
    assert "ruy" not in locate_packages(root)
    assert locate_packages(root)["kissfft"].name == "kissfft"


def test_pins_come_from_the_trees_own_scripts(tmp_path: Path) -> None:
    tree = open_tree(write_tree(tmp_path))
    pins = {pin.package: pin for pin in read_pins(tree, {})}
    assert {p.package: p.repository for p in pins.values()} == {
        "flatbuffers": "google/flatbuffers",
        "gemmlowp": "google/gemmlowp",
        "ruy": "google/ruy",
        "kissfft": "mborgerding/kissfft",
        "cmsis": "ARM-software/CMSIS_6",
        "cmsis_nn": "ARM-software/CMSIS-NN",
    }
    assert pins["cmsis"].commit == "3" * 40
    assert pins["cmsis_nn"].ref == "5" * 40
    assert pins["flatbuffers"].commit == "187240970746d00bbd26b0f5873ed54d2477f9f3"
    assert (pins["kissfft"].ref, pins["kissfft"].commit) == ("refs/tags/v999", "")
    assert pins["kissfft"].patch == "tflite-micro/third_party/kissfft/kissfft.patch"
    assert pins["ruy"].patch == ""


def test_a_users_commit_replaces_the_pin_and_is_recorded(tmp_path: Path) -> None:
    tree = open_tree(write_tree(tmp_path))
    ruy = next(p for p in read_pins(tree, {"google/ruy": "a" * 40}) if p.package == "ruy")
    assert (ruy.commit, ruy.override_of) == ("a" * 40, "2" * 40)


def test_a_users_commit_of_an_unknown_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="google/roy"):
        read_pins(open_tree(write_tree(tmp_path)), {"google/roy": "a" * 40})


def test_scripts_that_name_no_version_are_refused(tmp_path: Path) -> None:
    tree = open_tree(write_tree(tmp_path))
    write_files(tmp_path, {"tensorflow/lite/micro/tools/make/third_party_downloads.inc": "nothing"})
    with pytest.raises(ToolError, match="gemmlowp, ruy"):
        read_pins(tree, {})


def test_commit_options() -> None:
    assert parse_commits(["a" * 40, f"google/ruy={'b' * 40}"]) == {
        TFLM_REPOSITORY: "a" * 40,
        "google/ruy": "b" * 40,
    }
    assert tflm_pin({TFLM_REPOSITORY: "a" * 40}).commit == "a" * 40


@pytest.mark.parametrize("option", ["main", "abc123", "A" * 40, "google/ruy=", "=" + "g" * 40])
def test_commit_options_must_be_full_ids(option: str) -> None:
    with pytest.raises(UsageError, match="full commit id"):
        parse_commits([option])
