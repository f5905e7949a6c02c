#!/bin/sh
# Shows what `forge ota` says of three models, against firmware known by its ELF, by its manifest and as a running device
# (in QEMU); packs the one that may be sent. Ends with 0 when all verdicts are as they should be.
#
#     examples/ota/run.sh [FOLDER]      builds into FOLDER, default build/ota
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
if [ -z "${FORGE:-}" ]; then
    if [ -x "$root/.venv/bin/forge" ]; then FORGE="$root/.venv/bin/forge"; else FORGE=forge; fi
fi
build=${1:-$root/build/ota}
failed=0

# expect CODE COMMAND...: run a command, and remember when it ends with another code
expect() {
    wanted=$1
    shift
    printf '\n$ forge %s\n' "$*"
    # A command of several words: FORGE="python -m tflm_forge" works too.
    $FORGE "$@"
    code=$?
    if [ "$code" -ne "$wanted" ]; then
        printf 'exit code %s, and it should be %s\n' "$code" "$wanted"
        failed=1
    fi
}

echo "1. The firmware in the field"
expect 0 build "$here/fielded.tflite" --board mps2-an386 --runtime bundled -o "$build"

for source in "$build/firmware.elf" "$build/ops.manifest.yaml" "qemu:$build/firmware.elf"; do
    printf '\n2. Three new models, against %s\n' "$source"
    expect 0 ota check "$here/retrained.tflite" --against "$source"
    expect 7 ota check "$here/deeper.tflite" --against "$source"
    expect 3 ota check "$here/erf.tflite" --against "$source"
done

printf '\n3. One file to send, and what becomes of it when it is damaged\n'
package="$build/retrained.tflmpkg"
expect 0 ota pack "$here/retrained.tflite" --against "$build/firmware.elf" -o "$package"
expect 0 ota check "$package" --against "qemu:$build/firmware.elf"
expect 7 ota pack "$here/deeper.tflite" --against "$build/firmware.elf" -o "$build/deeper.tflmpkg"
head -c 2000 "$package" > "$build/damaged.tflmpkg"
expect 3 ota check "$build/damaged.tflmpkg" --against "$build/firmware.elf"

if [ "$failed" -eq 0 ]; then printf '\nAll verdicts are as they should be.\n'; fi
exit $failed
