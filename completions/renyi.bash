# renyi.bash - completion for bash. Verbs and options are those that the program itself prints.
# SPDX-License-Identifier: Apache-2.0
_renyi() {
  local program=${COMP_WORDS[0]} verb=${COMP_WORDS[1]} last=${COMP_WORDS[COMP_CWORD - 1]} word=${COMP_WORDS[COMP_CWORD]}
  local words=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ] || { [ "$verb" = help ] && [ "$COMP_CWORD" -eq 2 ]; }; then
    words="$("$program" help --options 2>/dev/null | cut -f 1) help"
  elif [[ $word == -* ]]; then
    words=$("$program" help "$verb" --options 2>/dev/null | cut -f 1)
  elif [[ $last == -* ]]; then # the values of an option with choices: a|b|c
    words=$("$program" help "$verb" --options 2>/dev/null |
      awk -F '\t' -v last="$last" '($1 == last || $2 == last) && index($3, "|") {gsub(/[|]/, " ", $3); print $3}')
  fi
  # No words: complete -o default gives files.
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _renyi renyi
