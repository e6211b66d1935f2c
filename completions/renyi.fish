# renyi.fish - completion for fish. Verbs and options are those that the program itself prints.
# SPDX-License-Identifier: Apache-2.0
function __renyi_options
    set -l words (commandline -opc)
    $words[1] help $words[2] --options 2>/dev/null | while read -l -d \t name letter argument text
        # The values of an option with choices, after that option; else the options.
        if string match -q -- '*|*' $argument; and contains -- $words[-1] $name $letter
            string split '|' $argument
        else if string match -q -- '-*' (commandline -ct)
            printf '%s\t%s\n' $name $text
        end
    end
end
function __renyi_wants_verb
    set -l words (commandline -opc)
    test (count $words) -eq 1; or test "$words[2..]" = help
end
complete -c renyi -n __renyi_wants_verb -f -a '(renyi help --options)'
# Files where there is nothing else to offer.
complete -c renyi -n 'not __renyi_wants_verb; and count (__renyi_options) >/dev/null' -f -a '(__renyi_options)'
