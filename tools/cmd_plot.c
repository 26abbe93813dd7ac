/* cmd_plot.c - `mizzle plot`: draw a table as SVG. */
#include <stdio.h>

#include "tools/command.h"
#include "tools/plot/plot_draw.h"

static struct option_list where, guides;
static struct plot_options options = { .where = &where, .guides = &guides };
static const char *output = "-";

static const struct option_group own = {
    "Picture",
    (const struct option[]){
        { "--x", NULL, OPTION_STR, &options.x, "COL", "Take x from this column" },
        { "--y", NULL, OPTION_STR, &options.y, "COL", "Take y from this column" },
        { "--by", NULL, OPTION_STR, &options.by, "COL[,COL]",
          "Draw one line for each value of these columns, which is its label (default: one line)" },
        { "--band", NULL, OPTION_STR, &options.band, "LOW,HIGH",
          "Shade the interval of y between these columns (default: none)" },
        { "--bars", NULL, OPTION_STR, &options.bars, "COL[,COL]",
          "Instead of lines, draw a bar for each row, the sum of these columns, with the label "
          "from --by and the unit from --x-label" },
        { "--where", NULL, OPTION_LIST, &where, "COL=V[,V]",
          "Draw only rows with one of these values in the column; several of these must all hold "
          "(default: all rows)" },
        { "--percent", NULL, OPTION_STR, &options.percent, "COL[,COL]",
          "Show these columns in percent; the interval follows y (default: none)" },
        { "--guide", NULL, OPTION_LIST, &guides, "LABEL=Y[,Y]",
          "Draw a dashed line at Y, or from the first Y at the left end to the second at the "
          "right one; may be given several times (default: none)" },
        { "--title", NULL, OPTION_STR, &options.title, "TEXT",
          "Write this above the picture (default: the names of the columns)" },
        { "--note", NULL, OPTION_STR, &options.note, "TEXT",
          "Write this below the title (default: nothing)" },
        { "--x-label", NULL, OPTION_STR, &options.x_label, "TEXT",
          "Name the x axis, with its unit (default: the column)" },
        { "--y-label", NULL, OPTION_STR, &options.y_label, "TEXT",
          "Name the y axis, with its unit (default: the column)" },
        { "--x-range", NULL, OPTION_STR, &options.x_range, "LOW,HIGH",
          "Draw the points with x from LOW to HIGH, in the unit of the axis (default: all)" },
        { "--y-range", NULL, OPTION_STR, &options.y_range, "LOW,HIGH",
          "Draw the points with y from LOW to HIGH, in the unit of the axis (default: all)" },
        { "--log-x", NULL, OPTION_FLAG, &options.log_x, NULL, "Make the x axis logarithmic" },
        { "--log-y", NULL, OPTION_FLAG, &options.log_y, NULL, "Make the y axis logarithmic" },
        { "--output", "-o", OPTION_STR, &output, "FILE",
          "Write the picture to FILE (default: standard output)" },
        OPTION_END,
    },
};

static int cmd_plot_main(int argc, char **argv)
{
    struct err err;
    int nargs, status = options_parse(&cmd_plot, argc, argv, &nargs);
    if (status >= 0)
        return status;
    if (nargs != 1) {
        fprintf(stderr, "mizzle plot: expected one FILE.csv; see mizzle plot --help\n");
        return EXIT_USAGE;
    }
    return command_fail("plot", plot_draw(output, argv[1], &options, &err), &err);
}

const struct command cmd_plot = {
    .name = "plot",
    .summary = "draw a table of comma-separated values",
    .args = "FILE.csv",
    .description =
        "Draws columns of FILE.csv, whose first line names them, as SVG. Axes have round values; "
        "lines "
        "differ in colour and in the shape of their marks and have their labels at their ends; the "
        "picture follows the reader's light or dark scheme. The same table and options give the "
        "same "
        "bytes on every machine. Points are joined in the order of x; an empty field interrupts "
        "the "
        "line. FILE may be - for standard input.\n\n"
        "  mizzle eval --policy mlp,random --sweep 0:0.07:8 --csv sweep.csv\n"
        "  mizzle plot sweep.csv --x routed --y accuracy --by policy -o sweep.svg \\\n"
        "      --band accuracy_low,accuracy_high --percent routed,accuracy\n",
    .groups = (const struct option_group *const[]){ &own, NULL },
    .run = cmd_plot_main,
};
