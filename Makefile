# Everything a fresh Debian or Ubuntu machine needs, from its own packages and PyPI. As root, or with sudo.
#   make demo   sets up, then builds examples/digits for stm32f4, runs it in QEMU and checks it
#   make test   sets up, then runs the linters and all tests
#   make bench  prints the numbers of the README; make bench-tflm those of docs/tflm.md

SHELL := /bin/bash
VENV := .venv
PYTHON ?= python3
PIP := $(VENV)/bin/pip --disable-pip-version-check -q
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo -E)
RUN_PACKAGES := gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib \
	qemu-system-arm cmake ninja-build ccache python3-venv
TEST_PACKAGES := g++ clang-format git openocd gdb-multiarch dfu-util stlink-tools
# Debian's headless browser looks at the HTML reports: 65 MB. Where apt has none (Ubuntu), these tests are skipped.
BROWSER_PACKAGE := chromium-headless-shell
DEMO_STAMP := $(VENV)/.demo
TEST_STAMP := $(VENV)/.test

.PHONY: demo test bench bench-tflm lint clean

demo: $(DEMO_STAMP)
	$(VENV)/bin/forge flash-and-test examples/digits/digits.tflite --board stm32f4 \
		--inputs examples/digits/digits_test.npz

test: $(TEST_STAMP) lint
	$(VENV)/bin/pytest -n 2 -q

lint: $(TEST_STAMP)
	$(VENV)/bin/ruff check -q .
	$(VENV)/bin/ruff format -q --check .
	$(VENV)/bin/mypy
	git ls-files -- '*.cc' '*.h' '*.c' | grep -v j2 | xargs clang-format --dry-run -Werror

bench: $(TEST_STAMP)
	$(VENV)/bin/python tools/bench.py
	$(VENV)/bin/python tools/bench_link.py

$(VENV)/bin/pip: | $(VENV)/.system
	$(PYTHON) -m venv $(VENV)

$(VENV)/.system:
	@missing=(); for p in $(RUN_PACKAGES); do dpkg -s $$p >/dev/null 2>&1 || missing+=($$p); done; \
	if [ $${#missing[@]} -gt 0 ]; then \
		$(SUDO) apt-get update -q && \
		DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -q -y --no-install-recommends $${missing[@]}; \
	fi
	@mkdir -p $(VENV) && touch $@

$(VENV)/.test-system: | $(VENV)/.system
	@missing=(); for p in $(TEST_PACKAGES); do dpkg -s $$p >/dev/null 2>&1 || missing+=($$p); done; \
	if [ $${#missing[@]} -gt 0 ]; then \
		$(SUDO) apt-get update -q && \
		DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -q -y --no-install-recommends $${missing[@]}; \
	fi
	@if ! dpkg -s $(BROWSER_PACKAGE) >/dev/null 2>&1 && [ -n "$$(apt-cache search --names-only '^$(BROWSER_PACKAGE)$$')" ]; then \
		DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -q -y --no-install-recommends $(BROWSER_PACKAGE); \
	fi
	@touch $@

# The reference interpreter has wheels for x86-64 only; elsewhere the recorded golden files serve.
$(DEMO_STAMP): pyproject.toml | $(VENV)/bin/pip
	$(PIP) install -e '.[reference]' || $(PIP) install -e .
	@touch $@

$(TEST_STAMP): pyproject.toml | $(VENV)/bin/pip $(VENV)/.test-system
	$(PIP) install -e '.[dev,reference]' || $(PIP) install -e '.[dev]'
	@touch $@ $(DEMO_STAMP)

bench-tflm: $(TEST_STAMP)
	$(VENV)/bin/python tools/bench_tflm.py

clean:
	rm -rf build dist $(VENV)
