"""Tells what the members and functions of the C and C++ libraries are for: printf, float arithmetic, malloc and so on.

Names are those of newlib, libgcc and libstdc++ as toolchains for bare metal ship them (GCC 12, newlib 3 and 4).
"""

import re
from pathlib import PurePosixPath

from tflm_forge.size.records import Group

_LIBRARY = re.compile(
    r"lib(c|g|m|gcc|gcc_eh|stdc\+\+|supc\+\+|nosys|rdimon|rdpmon|gloss|semihost|crt0|c_nano|g_nano|m_nano"
    r"|stdc\+\+_nano|supc\+\+_nano|clang_rt[\w.-]*|picolibc|unwind)\.a$"
)
_PREFIX = re.compile(r"^(?:lib[cgm]?_a-|lib[cm]_(?:machine_[a-z]+_|common_|[a-z]+_))")
"""What newlib's and picolibc's builds put before a source's name: lib_a-memcpy.o, libc_string_memcpy.c.o."""
_START_FILE = re.compile(r"^(crt\w*|rdimon-crt0|start)\.(o|obj|S|c)$")

_FLOAT = re.compile(
    r"_?arm_\w*[sdh]f\w*|_*(aeabi_)?[dfh](add|sub|rsub|mul|div|neg|cmp\w*|rcmp\w*|2\w+)|__(aeabi|gnu)_\w*2[dfh]\w*"
    r"|__aeabi_c[dfr]+cmp\w*|_*(fix|fixuns|float|floatun|extend|trunc)[shdtxq][ifc]\w*"
    r"|_*(add|sub|mul|div|neg|cmp|eq|ne|gt|ge|lt|le|unord|pow|powi)[sdthx][fc]\d|__gnu_[hf]2[fh]\w*|ieee754-[sdh]f"
    r"|_fpclassify\w*|fp(-|_)?bit"
)
_INTEGER = re.compile(
    r"_*(u?divmod|u?div|u?mod|umod|mul|neg|abs|add|sub|cmp|ucmp|ashl|ashr|lshr|clz|ctz|ffs|clrsb|popcount|parity|bswap"
    r"|udiv_w_sdiv)v?(s|d|t)?i?\d*|_*(aeabi_)?(u?idiv\w*|u?ldivmod|lmul|ldiv0|idiv0|u?lcmp|l(lsl|lsr|asr))"
    r"|_dvmd_tls|_*(gnu_)?thumb1_case_\w+|lib1funcs|bpabi\w*|_popcount_tab|__clz_tab|__gnu_u?ldivmod_helper|_clz"
)
_EXCEPTIONS = re.compile(
    r"_*(cxa_(?!atexit|finalize|pure|guard|thread)\w+|gxx_personality\w*|unwind\w*|Unwind\w*|gnu_unwind\w*|aeabi_unwind\w*"
    r"|gcc_personality\w*|restore_core_regs|libunwind|pr-support|unwind-\w+|eh_\w+|vterminate|cp-demangle|cxxabi\w*"
    r"|verbose_terminate\w*|gthr\w*|get_eit_entry|search_EIT_table|selfrel_offset31|next_unwind_byte|cplus_demangle\w*"
    r"|(register|deregister)_frame\w*|d_\w+|emutls\w*|function_throw\w*|atexit_thread|vmi_class\w*|si_class\w*"
    r"|class_type_info|tinfo\d*)"
)
_MALLOC = re.compile(
    r"_*(nano-)?(m|c|re|v|pv)?all?ocr?|_*(nano-)?(malloc|calloc|realloc|reallocf|reallocarray|free|cfree|mallinfo|malign"
    r"|memalign|malloptr|mallopt|mallstats|msize|valloc|pvalloc|mstats|mtrim|malloc_trim|aligned_alloc|malloc_usable_size"
    r"|sbrk|malloc_lock|malloc_unlock|malloc_\w+)r?(_r)?|mlock|syssbrk|sbrkr|_*(new|del)_op\w*|new_handler|sysmem"
    r"|bad_alloc|free_list|malloc_(free_list|sbrk_start|current_mallinfo)"
)
_PRINTF = re.compile(
    r"(?!(fp|snd)classify)\w*(nano-)?\w*(printf|scanf)\w*|_*(nano-)?s?v?f?w?(printf|scanf)\w*|_*(ld|d|gd)toa\w*"
    r"|_*(gdtoa|mprec)\S*|_*(mprec_\w+|[bd]2[bd]|i2b|s2b|lo0bits|hi0bits|multiply|multadd|pow5mult|lshift|mcmp|mdiff|ulp"
    r"|ratio|quorem|any_on|copybits|match|hexdig\w*|hexnan|gethex|ecvt\w*|fcvt\w*|efgcvt|ecvtbuf)"
    r"|_*s?(fp|f)?(puts|putc|putchar|getc|gets|getchar|write|read|flush|open|close|seek|tell|reopen|vwrite|iprintf)"
    r"(_r|_u|_unlocked|_chk)?|_*(s?print_r|sprint_r|ssprint_r|ssputs_r|sfputs_r|sfputc_r|sfvwrite_r|sfmoreglue|sfp|sinit"
    r"|sinit_lock\w*|sfp_lock\w*|s(read|write|seek|close|eofread)|smakebuf_r|swhatbuf_r|swbuf_r|swbuf|swsetup_r"
    r"|sflush_r|srefill_r|srget_r|ssrefill_r|sccl|fflush_r|fwalk\w*|fclose_r|cleanup_r|cleanup|sglue|sf|fwrite_r|puts_r"
    r"|putc_r|putchar_r|fputc_r|fputs_r|ungetc\w*|submore|setvbuf|setbuf\w*|findfp|makebuf|wbuf|wsetup|refill|rget"
    r"|fvwrite|stdio\w*|iswbuf\w*|flags|sflags|stdin|stdout|stderr|exponent|cvt|parse_\w+|mbtowc_r|global_stdio_init\S*)"
)
_MEMORY = re.compile(
    r"_*(aeabi_)?(mem\w+?|bcmp|bcopy|bzero|explicit_bzero|swab|(r?index)|st[rp]\w+|wcs\w+|wmem\w+|ffsl?l?|flsl?l?)\d?"
    r"(-\w+)?|_*strto\w+"
)
_CONVERSIONS = re.compile(r"_*(strto\w+|strerror\w*|strsignal\w*|ato\w+|str(f|p)time\w*)")
_MATH = re.compile(
    r"_*(lib_a-)?([skew]|[skew]f|er|wr|ws|ef|wf|kf|sf|math|sl|wl)_\w+|_*(ieee754|kernel|fdlib|math|fpclassify\w*)_?\w*"
    r"|_*(a?(sin|cos|tan)h?|atan2|exp2?|exp10|expm1|log2?|log10|log1p|pow|sqrt|cbrt|hypot|floor|ceil|rint|nearbyint"
    r"|l?l?round|l?l?rint|trunc|fm(ax|in|od|a)|fdim|remainder|remquo|frexp|ldexp|scalbl?n|modf|ilogb|logb|nan|copysign"
    r"|fabs|finite|isinf|isnan|signbit|gamma|[lt]gamma|erfc?|nextafter|signgam|matherr|sincos|rem_pio2)[fl]?(_r)?"
    r"|(exp|log|pow|sinf?|cosf?)\w*_data|(ln2|half?|two|tiny|huge|twom|invln2|log_|exp_|inv_?pio2|two_over_pi|npio2)\w*"
    r"|P\d|Q\d|C\d|S\d|one|zero|o_threshold|u_threshold|ovfl|bp|dp_[hl]|with_errno\w*|may_?[uo]flow\w*|top12"
)
_STARTUP = re.compile(
    r"_*(c_?rt\d?|crt[a-z0-9_]*|init|fini|libc_(init|fini)_array|init_array|fini_array|exit|_?Exit|atexit|on_exit\w*"
    r"|call_(at|exit)\w+|register_exitproc|cxa_(atexit|finalize|pure_virtual|guard\w*|thread_atexit)|cxa_pure|pure|guard"
    r"|impure\w*|global_impure_ptr|impure_ptr|impure_data|reent|reclaim_reent|getreent|errno|start|mainCRTStartup|atexit0"
    r"|do_global_[cd]tors_aux|frame_dummy|register_fini|libc_fini|tm_clone\S*|(de)?register_tm_clones|dso_handle"
    r"|initialise_monitor_handles|abort|raise\w*|signal\w*|assert\w*|kill\w*|getpid\w*|aeabi_atexit|quick_exit"
    r"|retarget_lock\w*|lock\w*|completed\S*|object\S*|stack_protector|stack_chk\w*|on_exit_args)"
)
_STREAMS = re.compile(r"_*(is|to)[a-z]+(_l|_r)?|_*ctype\w*|_*locale\w*|_*(bsearch|qsort\w*|rand\w*|time\w*|clock\w*)")

_AMBIGUOUS = re.compile(
    r"[a-z]\w?|P\d|Q\d|C\d|S\d|one|zero|two|half?|huge|tiny|ln2\w*|log_\w*|exp_\w*|init|fini|start|open|close|read|write"
    r"|flush|seek|tell|match|flags|cvt|ratio|multiply|exponent|lock\w*|object\S*|completed\S*|time\w*|clock\w*|signal\w*"
    r"|kill\w*|d_\w+|index|to[a-z]+|is[a-z]+_?|guard|pure|bp|impure\w*|environ|ct_\w+|parse_\w+|math_\w*|main"
)
"""Names that a library uses inside, and that anybody may use: without the library's name they tell nothing."""

_CTYPE = re.compile(
    r"(is(alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit)|to(lower|upper))(_l)?"
)

_BY_NAME: tuple[tuple[re.Pattern[str], Group], ...] = (
    (_EXCEPTIONS, Group.EXCEPTIONS),
    (_CONVERSIONS, Group.LIBRARY),
    (_MALLOC, Group.MALLOC),
    (_FLOAT, Group.FLOAT),
    (_INTEGER, Group.INTEGER),
    (_STARTUP, Group.STARTUP),
    (_MEMORY, Group.MEMORY),
    (_PRINTF, Group.PRINTF),
    (_MATH, Group.MATH),
    (_STREAMS, Group.LIBRARY),
)


def is_library(name: str) -> bool:
    """Whether an archive is one of a toolchain's own libraries ("libc_nano.a")."""
    return _LIBRARY.match(name) is not None


def find_member_group(library: str, member: str) -> Group:
    """Return what a member of one of the toolchain's libraries is for.

    Args:
        library: the archive's name ("libgcc.a").
        member: the member's name ("_arm_muldf3.o").
    """
    stem = _PREFIX.sub("", re.sub(r"(\.[cS])?\.o(bj)?$|\.[cS]$", "", member))
    if "tinystdio" in member:
        return Group.PRINTF
    if library.startswith("libm"):
        return Group.MATH
    if library.startswith(("libstdc++", "libsupc++")):
        if _EXCEPTIONS.fullmatch(stem):
            return Group.EXCEPTIONS
        return Group.MALLOC if _MALLOC.fullmatch(stem) else Group.CPP
    if library.startswith(("libgcc", "libclang_rt", "libunwind")):
        if _EXCEPTIONS.fullmatch(stem):
            return Group.EXCEPTIONS
        return Group.FLOAT if _FLOAT.fullmatch(stem) else Group.INTEGER
    return _find(stem) or Group.LIBRARY


def find_symbol_group(symbol: str) -> Group | None:
    """Return the library group of a function or variable by its name alone; None when it is in none that is known."""
    if symbol.startswith(("_ZSt", "_ZNSt", "_ZNKSt", "_ZTVSt", "_ZTISt", "_ZTSSt", "_ZGVNSt", "_ZN9__gnu_cxx")):
        return Group.CPP
    if symbol.startswith(("_Znw", "_Zna", "_Zdl", "_Zda")):
        return Group.MALLOC
    if symbol.startswith(("_ZN10__cxxabiv1", "_ZTVN10__cxxabiv1", "_ZTIN10__cxxabiv1", "_ZTSN10__cxxabiv1")):
        return Group.EXCEPTIONS
    plain = re.sub(r"\.(constprop|isra|part|lto_priv|cold)\b.*|\.\d+$", "", symbol)
    if plain.startswith("_Z") or (_AMBIGUOUS.fullmatch(plain) and not _CTYPE.fullmatch(plain)):
        return None
    return _find(plain)


def find_source_group(path: str) -> Group | None:
    """Return the library group of a source or object of a library, by its path or name; None when it is in none."""
    name = PurePosixPath(path).name
    if _START_FILE.match(name):
        return Group.STARTUP
    if "/include/" in path:
        return None
    if "libstdc++" in path or "libsupc++" in path:
        return find_member_group("libstdc++.a", name)
    if "/libgcc" in path:
        return find_member_group("libgcc.a", name)
    if "/libm/" in path:
        return Group.MATH
    if re.search(r"newlib.*/(tiny)?stdio/", path):
        return Group.PRINTF
    if "newlib" in path or "picolibc" in path or "libgloss" in path:
        return find_member_group("libc.a", name)
    return None


def _find(stem: str) -> Group | None:
    name = stem.removeprefix("nano-")
    short = name.removesuffix("_r")
    return next((group for pattern, group in _BY_NAME if pattern.fullmatch(name) or pattern.fullmatch(short)), None)
