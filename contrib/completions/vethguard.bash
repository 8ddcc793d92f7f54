# SPDX-License-Identifier: Apache-2.0
# bash completion for vethguard; goes to /usr/share/bash-completion/completions/vethguard

_vethguard_run()
{
	local i words
	# Behind the options the command's own completion takes over.
	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--)
			((i++))
			break
			;;
		--policy | --config | --name | --user | --audit | --env | -p | -c | -n | -u | -a | -e)
			((i++))
			;;
		-*) ;;
		*) break ;;
		esac
	done
	if ((i <= COMP_CWORD)) && [[ ${COMP_WORDS[i]} != -* || ${COMP_WORDS[i - 1]} == -- ]] &&
		[[ $3 != -* || $3 == -- ]]; then
		if declare -F _command_offset >/dev/null; then
			_command_offset "$i"
		else
			COMPREPLY=($(compgen -c -- "$2"))
		fi
		return
	fi
	case $3 in
	--policy | --config | --audit | -p | -c | -a)
		COMPREPLY=($(compgen -f -- "$2"))
		compopt -o filenames 2>/dev/null
		return
		;;
	--user | -u)
		COMPREPLY=($(compgen -u -- "$2"))
		return
		;;
	--env | -e)
		COMPREPLY=($(compgen -v -- "$2"))
		return
		;;
	--name | -n) return ;;
	esac
	words='--policy --config --name --user --audit --observe --env --no-env --proxy-env --verbose --help --'
	COMPREPLY=($(compgen -W "$words" -- "$2"))
}

_vethguard()
{
	local words=
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W 'run policy audit doctor help version' -- "$2"))
		return
	fi
	case ${COMP_WORDS[1]} in
	run)
		_vethguard_run "$@"
		return
		;;
	policy)
		words='--json --help'
		((COMP_CWORD == 2)) && words='check explain --help'
		;;
	audit)
		words='--json --help --denied --sandbox --since'
		[[ ${COMP_WORDS[2]} == verify ]] && words='--anchor --help'
		((COMP_CWORD == 2)) && words='show verify --help'
		;;
	doctor) words='--json --help' ;;
	help) words='run policy audit doctor version' ;;
	esac
	COMPREPLY=($(compgen -W "$words" -- "$2"))
	if [[ ${COMP_WORDS[1]} == @(policy|audit) && $COMP_CWORD -gt 2 && $2 != -* ]]; then
		COMPREPLY=($(compgen -f -- "$2"))
		compopt -o filenames 2>/dev/null
	fi
}
complete -F _vethguard vethguard
