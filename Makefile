# The front door. `make run` and `make test` do everything on a fresh Debian or Ubuntu machine.
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
export FUZZ_SECONDS

.PHONY: all build run test test-gpu fuzz install bundle clean help

all: build

help:
	@echo 'make            install what is missing and build into build/'
	@echo 'make run        the same, then a search over row softmax: no GPU and no key needed'
	@echo 'make test       install what is missing, build with sanitizers and without, run all tests'
	@echo 'make test-gpu   the tests that need a GPU; says so and ends well where there is none'
	@echo 'make fuzz       fuzz every parser for FUZZ_SECONDS ($(FUZZ_SECONDS)) each'
	@echo 'make install    into PREFIX ($(PREFIX))'
	@echo 'make bundle     build/bundle: a folder that runs on machines without the libraries'
	@echo 'make clean      remove the build trees'

build:
	@scripts/build.sh

run: build
	build/bin/rung run config/pipelines/quickstart.cfg

test:
	@scripts/test.sh

test-gpu:
	@scripts/test_gpu.sh

fuzz:
	@scripts/fuzz.sh

install: build
	cmake --install build --prefix '$(PREFIX)'

bundle: build
	@scripts/bundle.sh build/bundle

clean:
	rm -rf build build-test build-tsan build-clang build-fuzz build-gpu
