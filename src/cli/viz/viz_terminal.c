/* viz_terminal.c - what the terminal that renyi viz draws in understands, and how wide it is.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/viz/viz_arguments.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int is_set(const char *name, const char *value)
{
    const char *text = getenv(name);

    return text && (!value || strcmp(text, value) == 0);
}

renyi_terminal viz_terminal(const char *word)
{
    if (word && strcmp(word, "auto") != 0)
        return strcmp(word, "kitty") == 0    ? RENYI_TERMINAL_KITTY
               : strcmp(word, "iterm2") == 0 ? RENYI_TERMINAL_ITERM2
                                             : RENYI_TERMINAL_BLOCKS;
    if (is_set("TMUX", NULL) || is_set("STY", NULL)) return RENYI_TERMINAL_BLOCKS;
    if (is_set("KITTY_WINDOW_ID", NULL) || is_set("TERM", "xterm-kitty") ||
        is_set("TERM", "xterm-ghostty") || is_set("TERM_PROGRAM", "ghostty"))
        return RENYI_TERMINAL_KITTY;
    if (is_set("TERM_PROGRAM", "iTerm.app") || is_set("TERM_PROGRAM", "WezTerm") ||
        is_set("TERM_PROGRAM", "mintty"))
        return RENYI_TERMINAL_ITERM2;
    return RENYI_TERMINAL_BLOCKS;
}

uint32_t viz_columns(void)
{
    const char *text = getenv("COLUMNS");
    struct winsize size = {0};
    long columns = text ? strtol(text, NULL, 10) : 0;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col) columns = size.ws_col;
    return columns < 20 ? (columns > 0 ? 20 : 80) : columns > 1000 ? 1000 : (uint32_t)columns;
}
