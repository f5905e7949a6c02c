"""Reading C++ without a compiler: definitions, declarations, mentions, conditional compilation."""

import pytest

from tflm_forge.runtimes.tflm.cpp_scan import Scan, scan_source


def scan(text: str, **macros: int | None) -> Scan:
    return scan_source(text, macros)


def test_functions_at_namespace_scope_are_defined_with_their_class() -> None:
    found = scan("""
        namespace tflite {
        TFLMRegistration Register_ADD() { return micro::RegisterOp(AddInit, AddPrepare, AddEval); }
        TfLiteStatus MicroInterpreter::Invoke() { return kOk; }
        MicroInterpreter::~MicroInterpreter() { Free(); }
        }  // namespace tflite
    """)
    assert found.defined == {
        "Register_ADD",
        "MicroInterpreter::Invoke",
        "MicroInterpreter::~MicroInterpreter",
    }


@pytest.mark.parametrize(
    "text",
    [
        "static int Helper() { return 1; }",
        "inline int Helper() { return 1; }",
        "constexpr int Helper() { return 1; }",
        "template <typename T, int N = 2> T Helper(T x) { return x; }",
        "namespace { int Helper() { return 1; } }",
        "namespace tflite { namespace { int Helper() { return 1; } } }",
        "__STATIC_FORCEINLINE int Helper(void) { return 1; }",
        "struct Helper { int Method() { return 1; } };",
        "enum class Helper { kOne = 1 };",
        "int Helper(int x = 3);",
        "static const int Helper[] = {1, 2};",
    ],
)
def test_what_no_other_file_can_link_to_is_not_defined(text: str) -> None:
    assert scan(text).defined == frozenset()


def test_scope_after_an_anonymous_namespace_is_external_again() -> None:
    found = scan("namespace a { namespace { int Hidden() { return 0; } } int Seen() { return Hidden(); } }")
    assert found.defined == {"Seen"}


def test_variables_are_defined_unless_internal() -> None:
    found = scan("const int kTensor = 0;\nconst uint16_t table[3] = {1, 2, 3};\nint counter;\nextern int other;")
    assert found.defined == {"kTensor", "table", "counter"}
    assert found.declared == {"other"}


def test_extern_c_is_no_scope_of_its_own() -> None:
    found = scan('extern "C" {\nint arm_add(int a) { return a; }\nint arm_sub(int a);\n}\nint After() { return 0; }')
    assert found.defined == {"arm_add", "After"}
    assert found.declared == {"arm_sub"}


def test_mentions_belong_to_the_name_that_makes_them() -> None:
    found = scan("""
        inline TFLMRegistration Register_CONV_INT8() { return Register_CONV(); }
        class Walker : public Base { Member member_; void Method(Argument a); int Inline() { return Called(); } };
        using Alias = Target;
        #define CHECK(x) do { if (!(x)) Fail(); } while (0)
        int Plain(Type a) { return Other(a); }
    """)
    assert "Register_CONV" in found.uses["Register_CONV_INT8"]
    assert {"Base", "Member", "Called"} <= found.uses["Walker"]
    assert "Argument" not in found.uses["Walker"]
    assert "Target" in found.uses["Alias"]
    assert "Fail" in found.uses["CHECK"]
    assert {"Type", "Other"} <= found.uses["Plain"]


def test_comments_and_literals_are_not_read() -> None:
    found = scan("""
        // int Commented() { }
        /* int Blocked() {
        } */
        const char* Text() { return "} int Quoted() { //"; }
        char Mark() { return '{'; }
        const char* Raw() { return R"x(int Raw2() {)x"; }
        int Last(int a) { return a / 1'000; }
    """)
    assert found.defined == {"Text", "Mark", "Raw", "Last"}


def test_includes_are_read_but_not_from_comments() -> None:
    found = scan('#include "a/b.h"\n#include <c.h>  // why\n// #include "d.h"\n#if 0\n#include "e.h"\n#endif\n')
    assert found.includes == {"a/b.h", "c.h"}


@pytest.mark.parametrize(
    ("condition", "macros", "kept"),
    [
        ("#if defined(CMSIS_NN)", {"CMSIS_NN": 1}, "Yes"),
        ("#if defined(CMSIS_NN)", {"CMSIS_NN": None}, "No"),
        ("#if defined(XTENSA) || defined(CMSIS_NN)", {"XTENSA": None, "CMSIS_NN": 1}, "Yes"),
        ("#if !defined XTENSA && FLAG > 2", {"XTENSA": None, "FLAG": 3}, "Yes"),
        ("#if FLAG == 1", {"FLAG": 0}, "No"),
        ("#ifdef A", {"A": 1}, "Yes"),
        ("#ifndef A", {"A": 1}, "No"),
        ("#ifdef UNKNOWN", {}, "Both"),
        ("#if defined(UNKNOWN) && defined(A)", {"A": None}, "No"),
        ("#if (defined(A) || 0) \\\n  && 1", {"A": 1}, "Yes"),
    ],
)
def test_conditions_select_branches(condition: str, macros: dict[str, int | None], kept: str) -> None:
    text = f"{condition}\nint Yes() {{ return 1; }}\n#else\nint No() {{ return 0; }}\n#endif\n"
    wanted = {"Yes", "No"} if kept == "Both" else {kept}
    assert scan_source(text, macros).defined == wanted


def test_elif_after_a_taken_branch_is_dropped() -> None:
    text = "#if defined(A)\nint One() { }\n#elif defined(B)\nint Two() { }\n#else\nint Three() { }\n#endif"
    assert scan(text, A=1, B=1).defined == {"One"}
    assert scan(text, A=None, B=1).defined == {"Two"}
    assert scan(text, A=None, B=None).defined == {"Three"}


@pytest.mark.parametrize(
    "text", ["{", "}}}", "#endif", "#else\n#elif", "namespace", "int f(", "#if", "template <", '"', "#define", "(", "="]
)
def test_damaged_text_is_read_without_failing(text: str) -> None:
    scan(text)
