#include "tools/lab/tasks/task_options.h"

#include "tools/lab/demo/world.h"

struct task_options shared_task = { .name = "milli", .seed = 1, .world = WORLD_SEED };

const struct option_group task_option_rows = {
    "Task",
    (const struct option[]){
        { "--task", NULL, OPTION_STR, &shared_task.name, "NAME",
          "Choose the task: milli has the questions of the demo world; csqa, arc and gsm8k those "
          "of --data; in `mizzle eval` ppl measures perplexity, and extract reads answers "
          "(default: milli)" },
        { "--data", NULL, OPTION_STR, &shared_task.data, "FILE",
          "Take the items of this file of JSON lines, in the form of the task's authors or of "
          "CITER; ppl: measure on this text (default: milli and ppl make their own questions)" },
        { "--prompt", NULL, OPTION_STR, &shared_task.prompt, "FORM",
          "Write prompts as in citer (an item's own prompt, else the paper's), chat (citer's, in "
          "the model's chat template) or @FILE, a text in which {question}, {choices} and {labels} "
          "are replaced, within the chat template if "
          "it is known and not plain@FILE (default: chat if the template is known, else citer)" },
        { "--kind", NULL, OPTION_STR, &shared_task.kind, "NAME",
          "milli: ask only where, which, sums, sort or notes (default: all)" },
        { "--wording", NULL, OPTION_STR, &shared_task.wording, "NAME",
          "milli: word all questions plain, chatty or story (default: all)" },
        { "--seed", "-s", OPTION_U64, &shared_task.seed, "N",
          "milli: choose the questions with this seed; those of `mizzle eval`, of `router collect` "
          "and of `router calibrate` are never the same. Seed of policy random (default: 1)" },
        OPTION_END,
    },
};
