"""What members of the toolchains' libraries are for; the names are those of Debian's newlib, libgcc and libstdc++."""

import pytest

from tflm_forge.size.libraries import find_member_group, find_symbol_group, is_library
from tflm_forge.size.records import Group


@pytest.mark.parametrize(
    ("library", "member", "group"),
    [
        ("libc_nano.a", "libc_a-nano-vfprintf_float.o", Group.PRINTF),
        ("libg_nano.a", "lib_a-memcpy.o", Group.MEMORY),
        ("libc_nano.a", "libc_a-nano-mallocr.o", Group.MALLOC),
        ("libc_nano.a", "libc_a-dtoa.o", Group.PRINTF),
        ("libc.a", "libc_a-strtod.o", Group.LIBRARY),
        ("libc.a", "libc_a-getc.o", Group.PRINTF),
        ("libc.a", "libc_a-exit.o", Group.STARTUP),
        ("libc.a", "libc_tinystdio_dtoa_ryu.c.o", Group.PRINTF),
        ("libc.a", "libc_string_strlen.c.o", Group.MEMORY),
        ("libm.a", "lib_a-ef_exp.o", Group.MATH),
        ("libgcc.a", "_arm_addsubdf3.o", Group.FLOAT),
        ("libgcc.a", "_fixunsdfdi.o", Group.FLOAT),
        ("libgcc.a", "_udivmoddi4.o", Group.INTEGER),
        ("libgcc.a", "_thumb1_case_uqi.o", Group.INTEGER),
        ("libgcc.a", "unwind-arm.o", Group.EXCEPTIONS),
        ("libgcc.a", "pr-support.o", Group.EXCEPTIONS),
        ("libstdc++_nano.a", "eh_throw.o", Group.EXCEPTIONS),
        ("libsupc++.a", "vterminate.o", Group.EXCEPTIONS),
        ("libstdc++_nano.a", "new_op.o", Group.MALLOC),
        ("libstdc++.a", "tree.o", Group.CPP),
    ],
)
def test_a_member_by_what_it_is_for(library: str, member: str, group: Group) -> None:
    assert is_library(library)
    assert find_member_group(library, member) == group


@pytest.mark.parametrize("name", ["libtensorflow-microlite.a", "libcmsis.a", "libapp.a", "libc.so"])
def test_other_archives_are_none_of_the_toolchains(name: str) -> None:
    assert not is_library(name)


@pytest.mark.parametrize(
    "name",
    ["main", "init", "start", "read", "write", "lock_door", "open", "time_of_day", "x", "application_run", "ratio"],
)
def test_names_that_anybody_may_use_tell_nothing(name: str) -> None:
    assert find_symbol_group(name) is None
