# Usage: make [MODE=release|debug|asan|tsan] [CC=...] [BLAS=0] [EDIT=0] [PORTABLE=1]
#             [RUN="qemu-aarch64 -cpu max"] [target]
# Targets: all (default), help, lib, test, soak, soak-serve, fuzz, kernels-test, exercise, demo, mini,
# web, perf, mca, speed, results, results-check, dist, clean; install and uninstall take PREFIX= and DESTDIR=.
MAKEFLAGS += -r -j$(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
ifeq ($(origin CC),default)
CC := cc
endif
ifeq ($(origin AR),default)
AR := ar
endif
MODE   := release
ARCH   := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
ifneq ($(filter-out clean help,$(or $(MAKECMDGOALS),all)),)
$(if $(filter release debug asan tsan fuzz,$(MODE)),,$(error MODE: expected release, debug, asan or tsan, found $(MODE)))
$(if $(ARCH),,$(error CC: expected a compiler, found $(CC), which does not run))
endif
SUFFIX := $(if $(filter 1,$(PORTABLE)),-portable)$(if $(filter 0,$(BLAS)),-noblas)
BUILD  := build/$(ARCH)-$(MODE)$(SUFFIX)
PREFIX := /usr/local
# V=1 shows whole commands. On a terminal what is being done takes one line, else a line each.
Q      := $(if $(filter 1,$(V)),,@)
SAY     = $(if $(Q),@$(if $(MAKE_TERMOUT),printf '\033[K%s\r' "$(1) $(2)",echo "$(1) $(2)"))

# Homebrew keeps its libraries outside the system's folders.
ifeq ($(shell uname),Darwin)
BREW     := $(shell brew --prefix 2>/dev/null || echo /opt/homebrew)
CPPFLAGS += -I$(BREW)/include -I$(BREW)/opt/openblas/include
LDFLAGS  += -L$(BREW)/lib -L$(BREW)/opt/openblas/lib
OPENBLAS := $(BREW)/opt/openblas/lib/libopenblas.dylib
endif

CFLAGS_ALL := -std=c11 -D_POSIX_C_SOURCE=200809L -I. $(CPPFLAGS) -g -MMD -MP -ffp-contract=off -fno-math-errno \
              -fPIC -fvisibility=hidden \
              -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes \
              -Wpointer-arith -Wconversion -Wdouble-promotion -Werror $(CFLAGS)
flags.release := -O2
flags.debug   := -Og
flags.asan    := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
flags.tsan    := -O1 -fsanitize=thread
flags.fuzz    := $(flags.asan) -fsanitize=fuzzer-no-link
# gcc follows variables through the inlined tiles of a kernel for a minute and then gives up.
ifeq ($(shell $(CC) --version 2>/dev/null | grep -c clang),0)
flags.asan    += -fno-var-tracking-assignments
flags.tsan    += -fno-var-tracking-assignments
calls := --param asan-instrumentation-with-call-threshold=0
else
calls := -mllvm -asan-instrumentation-with-call-threshold=0
# gcc checks these as well, and clang takes a minute a file for it.
sets := $(if $(filter asan fuzz,$(MODE)),$(foreach check,alignment null pointer-overflow object-size,-fno-sanitize=$(check)))
endif
# The tiles of all block types are so much code that both compilers take two minutes a file, unless
# each check of an address is a call, and the checks of arithmetic are left to scalar.c.
ifneq ($(filter asan fuzz,$(MODE)),)
blocks := $(calls) -fno-sanitize=undefined
endif

# Hardening, as far as compiler and linker have it; the other modes look for more than it does.
ifeq ($(MODE),release)
tried   = $(shell echo 'int main(void){return 0;}' | $(CC) -O2 -Werror $(1) -x c - -o /dev/null 2>/dev/null && echo '$(1)')
# A level of _FORTIFY_SOURCE that the caller has set stays.
fortify := $(if $(findstring FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
harden := -fstack-protector-strong $(fortify)
relro  := -Wl,-z,relro,-z,now
flags.release += $(or $(call tried,$(harden) -fcf-protection),$(call tried,$(harden)))
relro  := $(call tried,$(relro))
override LDFLAGS += $(relro)
endif

# Each instruction set is one object with flags of its own; no other object gets such flags.
isa.x86_64  := kernels/x86
isa.aarch64 := kernels/arm
isa.arm64   := kernels/arm
flags.kernels/x86/avx2       := -mavx2 -mfma -mf16c $(sets)
flags.kernels/x86/avx2_blocks := $(flags.kernels/x86/avx2) $(blocks)
flags.kernels/x86/avxvnni    := $(flags.kernels/x86/avx2) -mavxvnni
flags.kernels/x86/avxvnni_blocks := $(flags.kernels/x86/avxvnni) $(blocks)
flags.kernels/x86/avx512     := $(flags.kernels/x86/avx2) -mavx512f -mavx512bw -mavx512vl -mavx512dq
flags.kernels/x86/avx512_blocks := $(flags.kernels/x86/avx512) $(blocks)
flags.kernels/x86/avx512vnni := $(flags.kernels/x86/avx512) -mavx512vnni
flags.kernels/x86/avx512vnni_blocks := $(flags.kernels/x86/avx512vnni) $(blocks)
flags.kernels/x86/avx512bf16 := $(flags.kernels/x86/avx512) -mavx512bf16
flags.kernels/arm/neon_blocks := $(blocks)
flags.kernels/arm/dotprod    := -march=armv8.2-a+dotprod $(blocks)
flags.kernels/arm/i8mm       := -march=armv8.2-a+dotprod+i8mm $(blocks)
# Their loops have no register to spare for what guards a stack and a copy.
$(foreach f,$(wildcard kernels/x86/*.c kernels/arm/*.c),$(eval flags.$(f:.c=) += -fno-stack-protector -U_FORTIFY_SOURCE))
# These plain loops need vectorization; it does not change the bits.
ifeq ($(MODE),release)
flags.model/train/train_pass := -O3
flags.model/train/train_attn := -O3
flags.model/train/train_step := -O3
flags.router/learn/fit_mlp := -O3
flags.tools/lab/eval/statistics := -O3
endif
LINUX_USERS := kernels/sys/os tests/kernels/t_pool tools/lab/machine/limits
$(foreach f,$(if $(filter 1,$(PORTABLE)),$(LINUX_USERS)),$(eval flags.$f := -DPORTABLE))

# The sources of a layer: those of its folder and of the folders in it.
sources  = $(wildcard $(1)/*.c $(1)/*/*.c $(1)/*/*/*.c)
LIB_SRC := $(filter-out kernels/blas.c,$(wildcard kernels/*.c kernels/sys/*.c)) \
           $(if $(isa.$(ARCH)),$(wildcard $(isa.$(ARCH))/*.c)) \
           $(foreach layer,weights model net router,$(call sources,$(layer)))
# What the library needs; the program serves HTTP as well.
LIB_LIBS := -lcurl -ljansson -lz -lpthread -lm
LIBS     := -lmicrohttpd $(LIB_LIBS)

# OpenBLAS is optional: the build omits it with BLAS=0 or if it is not installed. It is loaded at
# run time, under the name given here or one of those in kernels/openblas.c.
OPENBLAS ?= libopenblas.so.0
ifneq ($(BLAS),0)
BLAS_FOUND := $(shell echo 'int main(void){return 0;}' | $(CC) $(LDFLAGS) -x c - -lopenblas -o /dev/null 2>/dev/null && echo 1)
ifeq ($(BLAS_FOUND),1)
LIB_SRC += kernels/blas.c
LIB_LIBS += $(if $(filter Linux,$(shell uname)),-ldl)
LIBS     += $(if $(filter Linux,$(shell uname)),-ldl)
flags.kernels/kernels  := -DHAVE_BLAS
flags.kernels/sys/cpu  := -DHAVE_BLAS
flags.kernels/openblas := -DHAVE_BLAS -DOPENBLAS='"$(OPENBLAS)"'
endif
endif

# `run` edits the lines of a conversation with libedit, unless EDIT=0 or it is not installed.
ifneq ($(EDIT),0)
EDIT_FOUND := $(shell echo 'int main(void){return !readline;}' | $(CC) $(LDFLAGS) -include stdio.h -include editline/readline.h -x c - -ledit -o /dev/null 2>/dev/null && echo 1)
ifeq ($(EDIT_FOUND),1)
LIBS += -ledit
flags.tools/run/prompt_input := -DHAVE_EDIT
endif
endif

# Stop if a key names no file, because a file would silently be compiled without its flags.
$(foreach key,$(filter flags.%,$(.VARIABLES)),$(if $(findstring /,$(key)),$(if \
    $(wildcard $(key:flags.%=%.c)),,$(error $(key): no file $(key:flags.%=%.c)))))

# The file for a first reading, which is a program of its own (tools/lab/README.md).
MINI := tools/lab/mini/mini.c
WEB  := tools/lab/web

# Archives, so that a test program links only what it uses.
LIB    := $(BUILD)/lib.a
TOOLS  := $(BUILD)/tools.a
SHARE  := $(DESTDIR)$(PREFIX)/share
LIBDIR := $(DESTDIR)$(PREFIX)/lib
INCLUDE := $(DESTDIR)$(PREFIX)/include
TLIB   := $(BUILD)/tests.a
TESTS  := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/*/t_*.c tests/*/*/t_*.c))
WRAP   := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,--wrap=strdup \
    -Wl,--wrap=posix_memalign
# In turns, since each of the archives of a test needs another one.
GROUP   = $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group

# build/mizzle is the program that people run and measure: a release build for this machine, made
# without setting BUILD. All other builds and their libraries stay in their own folders.
NATIVE := $(shell uname -m) $(firstword $(subst -, ,$(shell cc -dumpmachine 2>/dev/null)))
PLAIN  := $(filter release-file-native,$(MODE)-$(origin BUILD)-$(if $(filter $(ARCH),$(NATIVE)),native))
all: $(BUILD)/mizzle
ifneq ($(PLAIN),)
	@ln -sfn $(patsubst build/%,%,$(BUILD))/mizzle build/mizzle
	@$(if $(MAKE_TERMOUT),printf '\033[Kthe program is build/mizzle\n')
else
	@echo "the program is $(BUILD)/mizzle"
endif

help:
	@sed -n '/^#/!q; s/^# *//p' Makefile

# What ONLY leaves out (tests/run.sh) is not built either.
WANTED = $(if $(ONLY),$(addprefix $(BUILD)/,$(shell ONLY='$(strip $(ONLY))' sh tests/run.sh --list $(TESTS:$(BUILD)/%=%))),$(TESTS))
test: all $(if $(filter test,$(MAKECMDGOALS)),$(WANTED))
	@$(if $(MAKE_TERMOUT),printf '\033[K';) RUN="$(RUN)" BUILD="$(BUILD)" sh tests/run.sh $(TESTS:$(BUILD)/%=%)

# Slower than a test: decode 100,000 tokens (TOKENS=) with a cloud that fails.
soak: $(BUILD)/tests/router/soak
	@$(RUN) $< $(TOKENS)

# Serve 64 clients with 100,000 requests (REQUESTS=), one in ten rude, and compare each answer.
soak-serve: $(BUILD)/tests/tools/serve/t_serve_many
	@$(RUN) $< $(or $(REQUESTS),100000)

# Give the readers of files RUNS mutated files each, and a tenth of it to those that open whole
# models. It takes clang, whose libFuzzer mutates.
RUNS := 10000
SEED := 1
FUZZERS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))
$(FUZZERS): FUZZ_MAIN := -fsanitize=fuzzer
$(FUZZERS): $(BUILD)/tests/fuzz/fuzz.o
ifeq ($(MODE),fuzz)
fuzz: $(FUZZERS:%=%.run)
else
fuzz:
	@$(MAKE) MODE=fuzz CC="$(if $(findstring clang,$(CC)),$(CC),clang)" fuzz
endif
%.run: %
	@mkdir -p $<.seeds
	@$(RUN) $< -runs=$(if $(findstring fuzz_model,$<),$(shell expr $(RUNS) / 10),$(RUNS)) -seed=$(SEED) \
	    -verbosity=0 -print_final_stats=1 -artifact_prefix=build/$(notdir $<). $<.seeds

demo: all
	@sh tools/demo.sh $(BUILD)/mizzle

mini:
	@mkdir -p build
	$(CC) -O2 -ffp-contract=off $(MINI) -o build/mini -lm -lcurl

# Predict a kernel's loops without running them: make mca SYMBOL=matmul_q8 ISA=avx2, and
#   make mca SYMBOL=matmul_q8 ISA=dotprod CC=aarch64-linux-gnu-gcc
mca: all
	@OBJDUMP="$(shell $(CC) -print-prog-name=objdump)" SYMBOL="$(SYMBOL)" ISA="$(ISA)" sh tools/mca.sh $(BUILD)/mizzle

# Measure this machine, and write it into kernels/SPEED.md: make speed [MODELS=FILE...]
speed: all
	@MODELS="$(MODELS)" LLAMA_BENCH="$(LLAMA_BENCH)" sh tools/speed.sh $(BUILD)/mizzle

# Show where the time goes, by symbol: make perf BENCH="model --shape qwen2.5-0.5b" SYMBOL=matmul_q4_k
perf: all
	@BENCH="$(BENCH)" SYMBOL="$(SYMBOL)" sh tools/perf.sh $(BUILD)/mizzle

# Make the tables and pictures of router/results; check a tenth of them. ONLY=NAME selects.
results results-check: all
	@MIZZLE=$(BUILD)/mizzle sh tools/results.sh $(if $(filter %-check,$@),--check) $(ONLY)

$(LIB): $(LIB_SRC:%.c=$(BUILD)/%.o)
$(TOOLS): $(patsubst %.c,$(BUILD)/%.o,$(filter-out tools/main.c $(MINI) $(WEB)/%,$(call sources,tools))) \
          $(BUILD)/page_assets.o
$(TLIB): $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/support/*.c))
$(LIB) $(TOOLS) $(TLIB):
	@rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

$(BUILD)/mizzle: $(BUILD)/tools/main.o $(TOOLS) $(LIB)
	$(call SAY,LINK,$@)
	$(Q)$(CC) $(flags.$(MODE)) $(LDFLAGS) $(filter-out %/flags %/parts,$^) $(LIBS) -o $@

# The library, static and shared: router/mizzle.c and what it uses. Only its API is marked as
# visible (MIZZLE_API), so nothing else is exported.
VERSION := $(shell sed -n 's/^#define MIZZLE_VERSION "\(.*\)"/\1/p' router/mizzle.h)
ifeq ($(shell uname),Darwin)
SONAME   := libmizzle.1.dylib
SOLINK   := libmizzle.dylib
SOFLAGS  := -dynamiclib -install_name $(PREFIX)/lib/$(SONAME)
LOCALIZE := : # ld -r has done it
else
SONAME   := libmizzle.so.1
SOLINK   := libmizzle.so
SOFLAGS  := -shared -Wl,-soname,$(SONAME)
LOCALIZE := $(shell $(CC) -print-prog-name=objcopy) --localize-hidden
endif

lib: $(BUILD)/libmizzle.a $(BUILD)/$(SONAME)
	@ln -sfn $(SONAME) $(BUILD)/$(SOLINK)
ifneq ($(PLAIN),)
	@for f in libmizzle.a $(SONAME) $(SOLINK); do ln -sfn $(patsubst build/%,%,$(BUILD))/$$f build/$$f; done
else
	@echo "the libraries are $(BUILD)/libmizzle.a and $(BUILD)/$(SONAME)"
endif

$(BUILD)/$(SONAME): $(BUILD)/router/mizzle.o $(LIB)
	$(call SAY,LINK,$@)
	$(Q)$(CC) $(flags.$(MODE)) $(SOFLAGS) $(LDFLAGS) $(filter-out %/flags %/parts,$^) $(LIB_LIBS) -o $@

$(BUILD)/libmizzle.a: $(BUILD)/router/mizzle.o $(LIB)
	$(call SAY,LINK,$@)
	$(Q)$(CC) -r -nostdlib $(filter-out %/flags %/parts,$^) -o $(BUILD)/libmizzle.o
	$(Q)$(LOCALIZE) $(BUILD)/libmizzle.o
	$(Q)rm -f $@ && $(AR) rcs $@ $(BUILD)/libmizzle.o

# Written each time, because PREFIX may have changed.
$(BUILD)/mizzle.pc: always $(BUILD)/flags
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include' '' \
	    'Name: Mizzle' 'Description: Small language model here, large one in the cloud, routed token by token' \
	    'Version: $(VERSION)' 'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lmizzle' \
	    'Libs.private: $(strip $(LIB_LIBS))' >$@

# Tests may use everything except main().
$(BUILD)/tests/%: $(BUILD)/tests/%.o $(TLIB) $(TOOLS) $(LIB)
	$(call SAY,LINK,$@)
	$(Q)$(CC) $(flags.$(MODE)) $(FUZZ_MAIN) $(LDFLAGS) $(WRAP) $(GROUP) $(LIBS) -o $@

# Test kernels/ alone, which needs no other library: for cross compilers and emulators, e.g.
#   make kernels-test CC=aarch64-linux-gnu-gcc BLAS=0 LDFLAGS=-static RUN="qemu-aarch64 -cpu max"
# t_kernels alone lets no allocation fail, and so does without GNU ld.
KTESTS := $(patsubst %,$(BUILD)/tests/kernels/alone/%,t_kernels t_base t_math t_panels t_pool)
KOBJ   := $(patsubst %.c,$(BUILD)/%.o,$(filter kernels/%,$(LIB_SRC)) tests/support/guard.c)
$(filter-out %/t_kernels,$(KTESTS)): $(BUILD)/tests/support/torture.o
$(KTESTS): $(BUILD)/tests/kernels/alone/%: $(BUILD)/tests/kernels/%.o $(KOBJ)
	@mkdir -p $(@D)
	$(call SAY,LINK,$@)
	$(Q)$(CC) $(flags.$(MODE)) $(LDFLAGS) $(if $(filter %/torture.o,$^),$(WRAP)) $(filter-out %/flags %/parts,$^) $(filter -lpthread -lm -ldl,$(LIBS)) -o $@

# A set that writes to static memory is right in one thread, and wrong in two.
unshared = @for o in $(if $(filter release,$(MODE)),$(1)); do ! size -A $$o 2>/dev/null | grep -E '^\.(data|bss) +[1-9]' || \
    { echo "$$o: expected no static data but const, which threads would share"; exit 1; }; done

# make exercise N=3 checks exercises/03_*.c (tests/exercises/README.md) through the test of its layer
# and, if it is right, shows its speed. Its file gets no -Werror, and instructions for fmaf, which is a
# call of libm's without. The first eight are operations in a kernel set of their own, which goes into
# t_kernels and into a copy of the program. Without N, it lists the points of all; JSON=1 is for scripts.
EXERCISES := $(patsubst %.c,$(BUILD)/%,$(wildcard exercises/*.c))
EXERCISE  := $(filter $(BUILD)/exercises/$(N)_% $(BUILD)/exercises/0$(N)_%,$(EXERCISES))
KERNEL_OP := $(if $(filter 1 2 3 4 5 6 7 8,$(N)),$(patsubst 0$(N)_%,%,$(notdir $(EXERCISE))))
ifneq ($(and $(N),$(filter exercise,$(MAKECMDGOALS))),)
ifneq ($(words $(N)) $(words $(filter 1 2 3 4 5 6 7 8 9 10 11 12,$(N))),1 1)
$(error exercise: expected a number from 1 to 12, as in 'make exercise N=1', found '$(N)')
else ifeq ($(EXERCISE)$(JSON),)
$(error exercise $(N) is not started; type: sh tests/exercises/start.sh $(N))
endif
endif
ifeq ($(if $(JSON),,$(N)),)
exercise:
	@+BUILD="$(BUILD)" MAKE="$(MAKE)" RUN="$(RUN)" JSON="$(JSON)" sh tests/exercises/points.sh $(N)
else
exercise: $(EXERCISE).$(if $(KERNEL_OP),kernels $(EXERCISE).mizzle,check)
	@RUN="$(RUN)" sh tests/exercises/check.sh $< $(KERNEL_OP) $(if $(KERNEL_OP),$(EXERCISE).mizzle)
endif

$(foreach c,$(wildcard exercises/*.c),$(eval flags.$(c:.c=) := -Wno-error -Wno-conversion \
    -Wno-unused-parameter -Wno-sign-compare -Wno-double-promotion -Wno-vla -Wno-shadow \
    -Wno-missing-prototypes -Wno-strict-prototypes $(if $(filter x86_64,$(ARCH)),$(flags.kernels/x86/avx2))))
$(BUILD)/exercises/kernels.o: kernels/kernels.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call SAY,CC,$<)
	$(Q)$(CC) $(CFLAGS_ALL) $(flags.$(MODE)) $(flags.kernels/kernels) -DEXERCISE -c $< -o $@
$(EXERCISES:%=%.kernels): %.kernels: %.o $(BUILD)/exercises/kernels.o $(BUILD)/tests/kernels/t_kernels.o
$(EXERCISES:%=%.check): %.check: %.o $(BUILD)/tests/exercises/check.o
$(EXERCISES:%=%.mizzle): %.mizzle: %.o $(BUILD)/tools/main.o
$(patsubst %,%.mizzle,$(filter $(BUILD)/exercises/0%,$(EXERCISES))): $(BUILD)/exercises/kernels.o
$(EXERCISES:%=%.kernels) $(EXERCISES:%=%.check): $(TLIB)
$(EXERCISES:%=%.kernels) $(EXERCISES:%=%.check) $(EXERCISES:%=%.mizzle): $(TOOLS) $(LIB)
	$(call unshared,$(if $(filter %.kernels,$@),$(basename $@).o))
	$(Q)$(CC) $(flags.$(MODE)) $(LDFLAGS) $(if $(filter %.mizzle,$@),,$(WRAP)) $(GROUP) $(LIBS) -o $@

kernels-test: $(KTESTS)
	$(call unshared,$(filter $(BUILD)/$(isa.$(ARCH))/%,$(KOBJ)))
	@for t in $(if $(ISA)$(ONLY),$(firstword $(KTESTS)),$(KTESTS)); do echo "$(RUN) $$t"; \
	    $(RUN) $$t $(ISA:%=--isa %) $(ONLY:%=--only %) || exit 1; done

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call SAY,CC,$<)
	$(Q)$(CC) $(CFLAGS_ALL) $(flags.$(MODE)) $(flags.$*) -c $< -o $@

# The pages of `mizzle serve` and `mizzle explain --output` as arrays. Scripts are joined in the order
# of their names; explain's begin with those that it shares with serve's.
PAGE    := tools/serve/page
SCRIPTS := $(sort $(wildcard $(PAGE)/*.js))
LOOK    := tools/lab/explain/page
LOOKERS := $(PAGE)/inert.js $(sort $(wildcard $(LOOK)/*.js))
$(BUILD)/page_assets.c: $(PAGE)/page.html $(PAGE)/page.css $(SCRIPTS) $(LOOK)/page.html \
                        $(LOOK)/page.css $(LOOKERS) tools/cli/assets.sh
	@mkdir -p $(@D)
	@sh tools/cli/assets.sh serve_html $(PAGE)/page.html serve_css $(PAGE)/page.css \
	    serve_js $(SCRIPTS) explain_html $(LOOK)/page.html explain_css $(LOOK)/page.css \
	    explain_js $(LOOKERS) >$@.new
	@mv $@.new $@

$(BUILD)/page_assets.o: $(BUILD)/page_assets.c $(BUILD)/flags
	$(call SAY,CC,$<)
	$(Q)$(CC) $(CFLAGS_ALL) $(flags.$(MODE)) -c $< -o $@

# make web: the page of serve with the demo pair in it, as files for any web server, in build/web
# ($(WEB)/README.md). There are no threads, no network and no files that could be written.
WEB_SRC := $(filter-out kernels/blas.c kernels/sys/atomic_file.c net/answers/answer_file.c \
    net/http/http.c router/texts/turn.c tools/serve/serve_page.c,$(wildcard $(addsuffix /*.c, \
    kernels kernels/sys weights model model/text net net/answers net/dialect net/http router \
    router/decode router/texts $(WEB)) tools/serve/serve*.c)) \
    $(addprefix tools/cli/,json_report.c demo_files.c)
WEB_OBJ := $(WEB_SRC:%.c=build/wasm32/%.o)
WEB_CC   = $(if $(shell command -v ccache),ccache )clang --target=wasm32-wasi -std=c11 -O2 -msimd128 \
    -ffp-contract=off -fno-math-errno -ffunction-sections -D_POSIX_C_SOURCE=200809L \
    -D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_MMAN -D_WASI_EMULATED_GETPID -I. -Ibuild/wasm32 \
    -include $(WEB)/threads.h -idirafter /usr/include/$(ARCH)-linux-gnu -MMD -MP
WEB_LINK := $(addprefix -lwasi-emulated-,signal mman getpid) -Wl,--allow-undefined,--export-table \
    -Wl,--export=malloc,--export=free,--export=__stack_pointer,--gc-sections,--strip-all \
    -Wl,-z,stack-size=4194304
ifneq ($(filter web,$(MAKECMDGOALS)),)
$(if $(shell command -v wasm-ld),,$(error web: expected wasm-ld, found none; type: sh tools/setup.sh dev))
-include $(WEB_OBJ:.o=.d)
endif
$(WEB_OBJ): build/wasm32/%.o: %.c Makefile
	@mkdir -p $(@D) && : >>build/wasm32/pthread.h
	$(call SAY,CC,$@)
	$(Q)$(WEB_CC) -c $< -o $@
build/web/mizzle.wasm: $(WEB_OBJ)
	@mkdir -p $(@D)
	$(call SAY,LINK,$@)
	$(Q)$(WEB_CC) -mexec-model=reactor $^ $(WEB_LINK) -o $@
web: all build/web/mizzle.wasm
	@cd weights/milli && cp edge-0.5.gguf edge-0.5.router.safetensors cloud.gguf $(CURDIR)/build/web/
	@head -n 15 weights/milli/questions.jsonl >build/web/questions.jsonl
	@cat $(addprefix $(WEB)/,wasi.js jansson.js mizzle.js) >build/web/mizzle.js
	@cat $(SCRIPTS) >build/web/page.js && cp $(PAGE)/page.css $(WEB)/tab.js LICENSE build/web/
	@sed 's,<script,<script defer src="tab.js"></script>\n&,' $(PAGE)/page.html >build/web/index.html
	@$(RUN) $(BUILD)/mizzle explain --question 2 --output build/web/explain.html >/dev/null
	@chmod 644 build/web/* && echo "the page is build/web: put its files on a web server"

# What the last build was made with: a file changes only if that does. Flags of the compiler, and
# this file, rebuild all; what is linked, and with what, links again; flags of a kernel set, or those
# that depend on what was found, rebuild one object. So a build can begin with the objects of one that
# differs in these (.ci/run), and a new set compiles two files.
$(LIB) $(TOOLS) $(TLIB) $(BUILD)/mizzle $(BUILD)/libmizzle.a $(BUILD)/$(SONAME) $(TESTS) $(KTESTS) \
    $(BUILD)/tests/router/soak $(FUZZERS): $(BUILD)/parts
OWN := $(patsubst %,$(BUILD)/%,tools/run/prompt_input $(LINUX_USERS) \
    $(addprefix kernels/,kernels openblas sys/cpu) $(filter \
    kernels/x86/% kernels/arm/% exercises/%,$(patsubst flags.%,%,$(filter flags.%,$(.VARIABLES)))))
$(OWN:%=%.o): %.o: %.flags
$(BUILD)/exercises/kernels.o: $(BUILD)/kernels/kernels.flags
made.flags = $(CC) $(CFLAGS_ALL) $(flags.$(MODE)) $(shell grep -v '^flags\.kernels/[ax]' Makefile | cksum)
made.parts = $(LDFLAGS) $(LIBS) $(LIB_SRC) $(call sources,tools)
$(BUILD)/flags $(BUILD)/parts $(OWN:%=%.flags): always
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(or $(made.$(@F)),$(flags.$(@:$(BUILD)/%.flags=%))))' >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

COMPLETIONS := bash-completion/completions zsh/site-functions fish/vendor_completions.d
STRIP := $(shell $(CC) -print-prog-name=strip)
install: all lib $(BUILD)/mizzle.pc
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(SHARE)/man/man1' '$(SHARE)/mizzle/milli' \
	    '$(SHARE)/mizzle/routers' '$(INCLUDE)' '$(LIBDIR)/pkgconfig'
	install -m 755 $(BUILD)/mizzle '$(DESTDIR)$(PREFIX)/bin/mizzle'
	$(STRIP) '$(DESTDIR)$(PREFIX)/bin/mizzle'
	install -m 644 router/mizzle.h '$(INCLUDE)/mizzle.h'
	install -m 644 $(BUILD)/libmizzle.a '$(LIBDIR)/libmizzle.a'
	install -m 755 $(BUILD)/$(SONAME) '$(LIBDIR)/$(SONAME)'
	$(STRIP) --strip-unneeded '$(LIBDIR)/$(SONAME)'
	ln -sfn $(SONAME) '$(LIBDIR)/$(SOLINK)'
	install -m 644 $(BUILD)/mizzle.pc '$(LIBDIR)/pkgconfig/mizzle.pc'
	$(RUN) $(BUILD)/mizzle man >$(BUILD)/mizzle.1
	install -m 644 $(BUILD)/mizzle.1 '$(SHARE)/man/man1/mizzle.1'
	install -d '$(SHARE)/doc/mizzle' $(COMPLETIONS:%='$(SHARE)/%')
	install -m 644 LICENSE '$(SHARE)/doc/mizzle/LICENSE'
	for s in $(COMPLETIONS); do \
	    sh tools/completions.sh $${s%%[-/]*} >$(BUILD)/completions || exit; \
	    case $$s in bash*) f=mizzle ;; zsh*) f=_mizzle ;; *) f=mizzle.fish ;; esac; \
	    install -m 644 $(BUILD)/completions '$(SHARE)/'"$$s/$$f" || exit; \
	done
	for f in weights/milli/* weights/routers/*; do \
	    [ ! -f "$$f" ] || install -m 644 "$$f" '$(SHARE)/mizzle/'"$${f#weights/}" || exit; \
	done
	@# Let the loader find the new library; in a DESTDIR that is the packager's task.
	[ -n '$(DESTDIR)' ] || ldconfig 2>/dev/null || true

uninstall:
	rm -f '$(DESTDIR)$(PREFIX)/bin/mizzle' '$(SHARE)/man/man1/mizzle.1' '$(INCLUDE)/mizzle.h' \
	    '$(LIBDIR)/libmizzle.a' '$(LIBDIR)/$(SONAME)' '$(LIBDIR)/$(SOLINK)' \
	    '$(LIBDIR)/pkgconfig/mizzle.pc'
	rm -f '$(SHARE)/bash-completion/completions/mizzle' '$(SHARE)/zsh/site-functions/_mizzle' \
	    '$(SHARE)/fish/vendor_completions.d/mizzle.fish'
	rm -rf '$(SHARE)/mizzle' '$(SHARE)/doc/mizzle'

# The last commit as build/mizzle-VERSION.tar.gz, which builds and passes its tests outside of git. The
# same commit gives the same bytes.
dist:
	@git ls-files --error-unmatch Makefile >/dev/null 2>&1 || { echo "dist: this folder is not a git repository" >&2; exit 1; }
	@git diff --quiet HEAD || echo "dist: changes that are not committed are left out"
	@mkdir -p build
	@git archive --prefix=mizzle-$(VERSION)/ -o build/mizzle-$(VERSION).tar.gz HEAD
	@echo "the tarball is build/mizzle-$(VERSION).tar.gz"

clean:
	rm -rf build

.PHONY: all help lib test soak soak-serve fuzz kernels-test exercise demo mini web perf mca speed results results-check install uninstall dist clean always
.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
