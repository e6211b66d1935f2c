# Short names for common tasks; CMake and Ninja do the work.
BUILD  ?= build
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
CMAKE   = cmake -G Ninja -S .

.PHONY: all demo test torture bench bench-lvlm bench-serve bench-python wheel asan fuzz format check-format install deps clean

all: $(BUILD)/build.ninja
	@cmake --build $(BUILD) -j $(JOBS)

deps:
	@tools/deps

$(BUILD)/build.ninja: | deps
	@$(CMAKE) -B $(BUILD) -DRENYI_WERROR=$(if $(CI),ON,OFF) > /dev/null

demo: all
	@tools/demo $(BUILD)

test: all
	@tools/run-tests $(BUILD)

torture: all
	@tools/torture $(BUILD)

bench: all
	@bench/run $(BUILD)

bench-lvlm: all
	@bench/run-lvlm $(BUILD)

bench-python: all
	@bench/run-python $(BUILD)

bench-serve: all
	@bench/run-serve $(BUILD)

wheel: all
	@tools/make-wheel $(BUILD)

asan: | deps
	@$(CMAKE) -B $(BUILD)/asan -DCMAKE_BUILD_TYPE=RelWithDebInfo -DRENYI_SANITIZE=ON > /dev/null
	@cmake --build $(BUILD)/asan -j $(JOBS)
	@tools/run-tests $(BUILD)/asan

fuzz: | deps
	@tools/run-fuzz $(BUILD)/libfuzzer

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

check-format:
	@git ls-files '*.c' '*.h' | xargs clang-format --dry-run --Werror

install: all
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	rm -rf $(BUILD)
