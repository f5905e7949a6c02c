"""Taking the object API out of a header that flatc wrote."""

from tflm_forge.runtimes.tflm.lean_schema import find_object_types, strip_object_api

HEADER = """\
#include "flatbuffers/flatbuffers.h"
namespace tflite {

struct Thing;
struct ThingT;

template<typename T> struct OptionsTraits {
  static const Options enum_value = Options_NONE;
};

template<> struct OptionsTraits<tflite::Thing> {
  static const Options enum_value = Options_Thing;
};

template<> struct OptionsUnionTraits<tflite::ThingT> {
  static const Options enum_value = Options_Thing;
};

struct OptionsUnion {
  void *value;
};

struct ThingT : public ::flatbuffers::NativeTable {
  std::vector<int32_t> shape{};
};

struct Thing FLATBUFFERS_FINAL_CLASS : private ::flatbuffers::Table {
  typedef ThingT NativeTableType;
  int32_t size() const {
    return GetField<int32_t>(VT_SIZE, 0);
  }
  ThingT *UnPack() const;
};

inline ::flatbuffers::Offset<Thing> CreateThing(::flatbuffers::FlatBufferBuilder &_fbb, const ThingT *_o);

inline ThingT *Thing::UnPack() const {
  return nullptr;
}

inline bool VerifyOptions(::flatbuffers::Verifier &verifier, const void *obj) {
  return true;
}

inline void *OptionsUnion::UnPack(const void *obj) {
  return nullptr;
}

inline const tflite::Thing *GetThing(const void *buf) {
  return ::flatbuffers::GetRoot<tflite::Thing>(buf);
}

inline std::unique_ptr<tflite::ThingT> UnPackThing(
    const void *buf) {
  return {};
}

}  // namespace tflite
"""


def test_object_types_are_found() -> None:
    assert find_object_types(HEADER) == ("ThingT",)


def test_accessors_stay_and_the_object_api_goes() -> None:
    lean = strip_object_api(HEADER)
    for kept in (
        "struct ThingT;",
        "struct OptionsTraits {",
        "struct OptionsTraits<tflite::Thing> {",
        "return GetField<int32_t>(VT_SIZE, 0);",
        "bool VerifyOptions(",
        "GetThing(const void *buf) {",
        "}  // namespace tflite",
    ):
        assert kept in lean
    for gone in ("NativeTable {", "UnionTraits", "struct OptionsUnion", "Thing::UnPack()", "UnPackThing", "std::"):
        assert gone not in lean


def test_a_header_without_an_object_api_stays_as_it_is() -> None:
    plain = "#pragma once\nstruct A {\n  int a;\n};\ninline int f() {\n  return 1;\n}\n"
    assert strip_object_api(plain) == plain


def test_a_header_that_breaks_off_ends() -> None:
    assert strip_object_api("inline int f() {\n  return 1;\n") == "inline int f() {\n  return 1;\n"
