# Short names for common tasks; CMake and Ninja do the work.
BUILD  ?= build
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
CMAKE   = cmake -G Ninja -S .
CONFIGURED = [ -f $(BUILD)/build.ninja -o -f $(BUILD)/Makefile ]

.PHONY: all demo test static torture bench bench-lvlm bench-serve bench-python wheel asan fuzz format check-format install uninstall deps check-deps clean

all: check-deps
	@$(CONFIGURED) || $(CMAKE) -B $(BUILD) -DRENYI_WERROR=$(if $(CI),ON,OFF) > /dev/null
	@cmake --build $(BUILD) -j $(JOBS)

# Nothing is installed unasked: by `make deps`, `make demo`, `make test` and `make asan`, which say so.
deps:
	@BUILD=$(BUILD) tools/deps --install

demo test asan: INSTALL = --install
check-deps:
	@[ -z "$(INSTALL)" ] && $(CONFIGURED) || BUILD=$(BUILD) tools/deps $(INSTALL)

demo: all
	@tools/demo $(BUILD)

test: all
	@tools/run-tests $(BUILD)

torture: all
	@tools/torture $(BUILD)

bench: all
	@bench/run $(BUILD)
	@bench/run $(BUILD) --neighbour --only renyi,renyi-streams,openvino,openvino-throughput,onnxruntime,pytorch

bench-lvlm: all
	@bench/run-lvlm $(BUILD)

bench-python: all
	@bench/run-python $(BUILD)

bench-serve: all
	@bench/run-serve $(BUILD)

wheel: all
	@tools/make-wheel $(BUILD)

static: check-deps
	@$(CMAKE) -B $(BUILD)/static -DRENYI_STATIC=ON -DRENYI_TESTS=OFF > /dev/null
	@cmake --build $(BUILD)/static -j $(JOBS) --target renyi
	@tools/test-static $(BUILD)/static/renyi

asan: check-deps
	@$(CMAKE) -B $(BUILD)/asan -DCMAKE_BUILD_TYPE=RelWithDebInfo -DRENYI_SANITIZE=ON > /dev/null
	@cmake --build $(BUILD)/asan -j $(JOBS)
	@tools/run-tests $(BUILD)/asan

fuzz: check-deps
	@tools/run-fuzz $(BUILD)/libfuzzer

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

check-format:
	@git ls-files '*.c' '*.h' | xargs clang-format --dry-run --Werror

install: all
	@cmake --install $(BUILD) --prefix $(PREFIX)

uninstall: # the files of the last `make install`, and folders that are then empty
	@sed 's|^|$(DESTDIR)|' $(BUILD)/install_manifest.txt | tr '\n' '\0' | xargs -0 rm -f
	@sed 's|^|$(DESTDIR)|; s|/[^/]*$$||' $(BUILD)/install_manifest.txt | grep renyi | sort -ru | \
	  tr '\n' '\0' | xargs -0 -r rmdir --ignore-fail-on-non-empty

clean:
	rm -rf $(BUILD)
