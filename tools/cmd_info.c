/* cmd_info.c - `mizzle info`: show what a file holds, or what this processor can run. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/sys/os.h"
#include "kernels/kernels.h"
#include "tools/cli/json_report.h"
#include "tools/command.h"
#include "tools/info/info.h"
#include "weights/find.h"
#include "weights/weights.h"

static bool json, tensors;
static size_t context; /* 0: not given */

static const struct option_group own = {
    "Report",
    (const struct option[]){
        { "--json", NULL, OPTION_FLAG, &json, NULL, "Print one JSON object on stdout" },
        { "--tensors", NULL, OPTION_FLAG, &tensors, NULL,
          "List every tensor of the file: bytes, type, shape, name" },
        { "--context", "-c", OPTION_COUNT, &context, "N",
          "Compute the memory for a context of N tokens (default: 4096, or the model's maximum if "
          "that is less)" },
        OPTION_END,
    },
};

/* List the operations that a kernel set implements itself. */
static void print_ops(const struct kernels *set)
{
    struct kernels all;
    kernels_own(&all, set);
    printf("  %-12s", set->isa);
#define X(op)   \
    if (all.op) \
        printf(" %s", #op);
    KERNEL_OPS(X)
#undef X
    putchar('\n');
}

/* Print the processor, the kernel sets it can run and the one that would be chosen. */
static int machine(struct err *err)
{
    struct kernels chosen;
    unsigned cpu = cpu_detect();
    size_t quota = os_quota("");
    const char *isa = getenv("MIZZLE_ISA");
    int code = kernels_pick(&chosen, isa && *isa ? isa : NULL, cpu, err);
    if (code != OK)
        return code;
    const struct tune *plain = &chosen.tune[P_F32], *decoded = &chosen.tune[P_Q4_K];
    if (json) {
        json_t *sets = json_array();
        for (size_t i = 0; i < kernels_nsets; i++)
            if (kernels_ready(kernels_sets[i], cpu))
                json_report_add(&sets, json_string(kernels_sets[i]->isa));
        json_t *root = json_pack(
            "{s:o, s:I, s:o, s:o, s:s, s:{s:I, s:I, s:I, s:I, s:b}}", "cpu",
            escaped_json(cpu_name(), strlen(cpu_name())), "threads", (json_int_t)os_cpus(), "quota",
            quota ? json_integer((json_int_t)quota) : json_null(), "sets", sets, "chosen",
            chosen.isa, "tune", "panels", (json_int_t)plain->panels, "run", (json_int_t)plain->run,
            "ahead", (json_int_t)plain->ahead, "ahead_decoded", (json_int_t)decoded->ahead, "fixed",
            chosen.tune_fixed);
        return json_report_print("info", root, JSON_COMPACT, "", "", err);
    }
    fputs("cpu     ", stdout);
    escaped_put(cpu_name(), strlen(cpu_name()));
    printf("\nthreads %zu", os_cpus());
    if (quota)
        printf(", the CPU quota allows %zu", quota);
    fputs("\nsets   ", stdout);
    for (size_t i = 0; i < kernels_nsets; i++)
        if (kernels_ready(kernels_sets[i], cpu))
            printf(" %s", kernels_sets[i]->isa);
    printf("\nchosen  %s\ntune    panels=%zu run=%zu ahead=%zu", chosen.isa, plain->panels,
           plain->run, plain->ahead);
    if (decoded->ahead != plain->ahead)
        printf(" (decoded types: ahead=%zu)", decoded->ahead);
    puts(chosen.tune_fixed ? "" : ", at first: a model tries others");
    puts("\noperations of each set; what is missing comes from the set before");
    for (size_t i = 0; i < kernels_nsets; i++)
        if (kernels_ready(kernels_sets[i], cpu))
            print_ops(kernels_sets[i]);
    return OK;
}

/* Open the file, reading as little as possible, and report on it. */
static int cmd_info_file(const char *name, struct err *err)
{
    char path[FIND_PATH];
    struct weights *w = NULL;
    struct info_model m;
    int code = find_model(path, name, err);
    if (code == OK)
        code = weights_open_header(&w, path, err);
    if (code == OK)
        code = info_model_read(&m, w, context, err);
    if (code == OK && context && !m.is)
        code = err_set(err, ERR_ARG, "--context: expected a model, found %s, which is none", path);
    if (code == OK)
        code = info_print(w, &m, json, tensors, err);
    weights_close(w);
    return code;
}

static int cmd_info_main(int n, char **args, struct err *err)
{
    if (!n && (tensors || context))
        return err_set(err, ERR_ARG, "%s: expected with FILE; see mizzle info --help",
                       tensors ? "--tensors" : "--context");
    return n ? cmd_info_file(args[0], err) : machine(err);
}

const struct command cmd_info = {
    .name = "info",
    .summary = "show what a file holds, or what this processor can run",
    .args = "[FILE]",
    .description =
        "Shows format, shape, types and size of FILE, which is a GGUF or safetensors file or a "
        "Hugging Face folder, of any architecture, or any name that -m takes elsewhere. Of a model "
        "it also shows tokenizer, chat template, the fingerprint that binds routers to it, and the "
        "memory that it takes; the lines that begin with \"no\" say what commands would refuse: no "
        "model can be loaded, no text be read or written, no chat be held. A GGUF file may be a "
        "header alone. Without FILE it shows the processor, the kernel sets that can run on it "
        "with the operations of each, the one that would be chosen, and how products walk the "
        "weights on this family of processors: the panels at once with one token, the "
        "multiply-adds of a product that a thread computes at a time, and the prefetch distance in "
        "bytes. For experiments, MIZZLE_ISA fixes them: avx2,panels=1,run=1048576,ahead=0.\n\n"
        "  mizzle info\n"
        "  mizzle info qwen.gguf --tensors\n"
        "  mizzle info Qwen2.5-0.5B --json\n",
    .groups = (const struct option_group *const[]){ &own, NULL },
    .run = cmd_info_main,
    .most = 1,
};
