# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of vlm-caption for bash. Options are those that the program itself lists.

_vlm_caption_options () {
  "$@" 2>/dev/null | sed -n 's/^ \+\(-[a-z], \)\?\(--[a-z][a-z-]*\).*/\2/p'
}

_vlm_caption () {
  local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local options

  COMPREPLY=()
  case $before in
    --precision)
      COMPREPLY=($(compgen -W "auto exact fast" -- "$word"))
      return ;;
    --tiling)
      COMPREPLY=($(compgen -W "auto on off" -- "$word"))
      return ;;
  esac
  if [[ $word == -* ]]; then
    if [[ ${COMP_WORDS[1]} == search ]]; then
      options=$(_vlm_caption_options "$program" search --help)
    else
      options=$(_vlm_caption_options "$program" --help-all)
    fi
    COMPREPLY=($(compgen -W "$options" -- "$word"))
    return
  fi
  # Names may have blanks in them.
  local IFS=$'\n'
  COMPREPLY=($(compgen -f -- "$word"))
  [[ $COMP_CWORD != 1 ]] || COMPREPLY+=($(compgen -W "search" -- "$word"))
}

complete -o filenames -F _vlm_caption vlm-caption
