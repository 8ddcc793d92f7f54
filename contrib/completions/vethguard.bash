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
		=) ((i++)) ;;
		--policy | --var | --config | --name | --user | --audit | --env | -p | -c | -n | -u | -a | -e)
			[[ ${COMP_WORDS[i + 1]} == = ]] || ((i++))
			;;
		-*) ;;
		*) break ;;
		esac
	done
	if ((i <= COMP_CWORD)) && [[ ${COMP_WORDS[i]} != -* || ${COMP_WORDS[i - 1]} == -- ]] &&
		[[ $3 != -* || $3 == -- ]]; then
		if declare -F _command_offset >/dev/null; then
			_command_offset "$i"
		elif ((i == COMP_CWORD)); then
			COMPREPLY=($(compgen -c -- "$2"))
		else
			COMPREPLY=($(compgen -f -- "$2"))
			compopt -o filenames 2>/dev/null
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
	--device)
		[[ $2 == /* ]] && COMPREPLY=($(compgen -f -- "$2")) || COMPREPLY=($(compgen -f -- /dev/))
		compopt -o filenames 2>/dev/null
		return
		;;
	--name | --var | -n) return ;;
	esac
	words='--policy --var --config --name --user --audit --observe --env --clean-env --keep-env --no-env --proxy-env --device --verbose --help --'
	COMPREPLY=($(compgen -W "$words" -- "$2"))
}

_vethguard_control()
{
	local command=${COMP_WORDS[1]} words='--socket --json --help'
	case $3 in
	--policy | -p | --netns | --netns-dir | --listen | --socket | --ca | --ca-bundle | --token-file)
		COMPREPLY=($(compgen -f -- "$2"))
		compopt -o filenames 2>/dev/null
		return
		;;
	--interface | -i) words=$(ls /sys/class/net 2>/dev/null) ;;
	--engine) words='docker podman' ;;
	--addresses) words='same own' ;;
	--like) words=$(vethguard list 2>/dev/null | awk 'NR > 1 { print $1 }') ;;
	--format | -f) words='shell docker json pem e2b modal daytona deno runloop langsmith openai-agents' ;;
	--listen-mode | --listen-owner | --pid | --container | -c | --name | -n | --address | --label | -l | --var | --ttl | --for | --reason | -r | --count | --prefix | --tap) return ;;
	*)
		case $command in
		attach)
			words+=' --interface --netns --pid --container --engine --policy --name --address --label --var'
			words+=' --ttl --observe --files --listen --listen-mode --listen-owner'
			;;
		env) words+=' --format --token-file --proxy-env --ca-bundle --ca' ;;
		prepare) words+=' --count --addresses --tap --netns-dir --prefix --remove' ;;
		claim) words+=' --policy --netns --like --label --var --ttl --observe --no-wait' ;;
		release) words+=' --tap --netns-dir --prefix --keep' ;;
		detach) words+=' --all --yes' ;;
		reload) words+=' --all --policy' ;;
		pause) words+=' --all --reason' ;;
		ask) words+=' --watch' ;;
		approve) words+=' --for --always --rule' ;;
		refuse) words+=' --reason' ;;
		resume) words+=' --all' ;;
		esac
		if [[ $2 != -* ]]; then
			[[ $command != @(attach|list|ask|prepare|claim) ]] || return
			words=$(vethguard list 2>/dev/null | awk 'NR > 1 { print $1 }')
			[[ $command != @(approve|refuse) ]] || words=$(vethguard ask 2>/dev/null | awk 'length($1) == 16 { print $1 }')
		fi
		;;
	esac
	COMPREPLY=($(compgen -W "$words" -- "$2"))
}

# How many words that are not options stand between `vethguard policy explain` and the cursor.
_vethguard_words()
{
	local i n=0
	for ((i = 3; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--var | --config) [[ ${COMP_WORDS[i + 1]} == = ]] || ((i++)) ;;
		-*) ;;
		=) ((i++)) ;;
		*) ((n++)) ;;
		esac
	done
	printf %d "$n"
}

# The presets that `vethguard policy new` can use.
_vethguard_presets()
{
	vethguard policy new --help 2>/dev/null | sed -n 's/^\(Agents and APIs\|Packages\): //p' | sed 's/,\| and / /g; s/^none$//'
}

_vethguard()
{
	local words='' what="${COMP_WORDS[1]} ${COMP_WORDS[2]}"
	local control='attach detach list show env reload pause resume ask approve refuse stats prepare claim release'
	COMPREPLY=()
	# Readline takes --option=value for three words: the value completes as if it stood apart.
	if [[ ${COMP_WORDS[COMP_CWORD]} == = ]]; then
		set -- "$1" '' "${COMP_WORDS[COMP_CWORD - 1]}"
	elif [[ $3 == = && -n $2 ]]; then
		set -- "$1" "$2" "${COMP_WORDS[COMP_CWORD - 2]}"
	fi
	if ((COMP_CWORD == 1)) && [[ $2 == -* ]]; then
		COMPREPLY=($(compgen -W '--help --version' -- "$2"))
		return
	fi
	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W "run $control session probe sidecar policy ca credential audit doctor help version" -- "$2"))
		return
	fi
	case ${COMP_WORDS[1]} in
	run)
		_vethguard_run "$@"
		return
		;;
	attach | detach | list | show | env | reload | pause | resume | ask | approve | refuse | stats | prepare | claim | release)
		_vethguard_control "$@"
		return
		;;
	sidecar) words='init run' ;;
	policy) words='check explain diff new' ;;
	audit) words='show suggest verify' ;;
	ca) words='show export csr install rotate' ;;
	credential) words='list show check rotate revoke' ;;
	session) words='create list show extend certificate revoke' ;;
	help) words="run $control session probe sidecar policy ca credential audit doctor version" ;;
	esac
	((COMP_CWORD == 2)) || words=
	if [[ $2 == -* ]]; then
		case $what in
		'policy check') words='--var --resolve --config --json --help' ;;
		'policy explain') words='--var --header --body --resolve --config --json --help' ;;
		'policy diff') words='--var --json --help' ;;
		'policy new') words='--agent --packages --host --name --mode --output --help' ;;
		'sidecar init') words='--uid --config --dns-port --loopback --inbound --udp --check --verbose --help' ;;
		'sidecar run') words='--policy --var --config --name --audit --observe --share --share-as --proxy-env --watch --init --uid --dns-port --loopback --inbound --udp --verbose --help' ;;
		'probe '*) words='--tcp --name --udp --dns --icmp --metadata --api --gateway --without --tools --timeout --limit --json --help' ;;
		'doctor '*) words='--config --roles --policy --socket --json --help' ;;
		'ca show' | 'ca export') words='--socket --json --help' ;;
		'ca csr') words='--name --socket --json --help' ;;
		'ca install') words='--root --overlap --socket --json --help' ;;
		'ca rotate') words='--overlap --name --socket --json --help' ;;
		'credential list' | 'credential show' | 'credential check' | 'credential rotate' | 'credential revoke') words='--socket --json --help' ;;
		'session create') words='--policy --name --ttl --from --certificate --by-address --var --label --observe --socket --json --help' ;;
		'session certificate') words='--out --ttl --socket --json --help' ;;
		'session extend') words='--ttl --socket --json --help' ;;
		'session list' | 'session show') words='--socket --json --help' ;;
		'session revoke') words='--signer --id --socket --json --help' ;;
		'audit show') words='--json --help --denied --sandbox --since --event --socket' ;;
		'audit suggest') words='--json --help --sandbox --since --event --policy --var --socket' ;;
		'audit verify') words='--anchor --socket --help' ;;
		*) words='--help' ;;
		esac
	elif [[ $what == 'policy explain' && $COMP_CWORD -gt 2 && $3 != @(--var|--config) && $(_vethguard_words) != 0 ]]; then
		[[ $(_vethguard_words) == 1 ]] && words='GET HEAD POST PUT PATCH DELETE OPTIONS CONNECT'
	elif [[ $what == 'policy new' && $COMP_CWORD -gt 2 && $3 != @(--output|-o) ]]; then
		case $3 in
		--agent | --packages | -a | -p) words=$(_vethguard_presets) ;;
		--mode | -m) words='enforce observe' ;;
		esac
	elif [[ $what == sidecar\ * && $COMP_CWORD -gt 2 && $3 == --loopback ]]; then
		words='all none'
	elif [[ $what == sidecar\ * && $3 == @(--config|-c|--policy|-p|--audit|-a|--share|-s|--share-as) ]]; then
		COMPREPLY=($(compgen -f -- "$2"))
		compopt -o filenames 2>/dev/null
		return
	elif [[ ${COMP_WORDS[1]} == probe && $3 == --without ]]; then
		words='tcp tcp6 name udp udp6 dns dns6 icmp icmp6 metadata api proxy socket'
	elif [[ ${COMP_WORDS[1]} == probe && $3 == --tools ]]; then
		words='curl python3 node bash nc wget dig nslookup ping'
	elif [[ ${COMP_WORDS[1]} == credential && $3 == --socket ]]; then
		COMPREPLY=($(compgen -f -- "$2"))
		compopt -o filenames 2>/dev/null
		return
	elif [[ ${COMP_WORDS[1]} == credential && $COMP_CWORD -gt 2 ]]; then
		words=$(vethguard list 2>/dev/null | awk 'NR > 1 { print $1 }')
	elif [[ ${COMP_WORDS[1]} == session && $COMP_CWORD -gt 2 ]]; then
		case $3 in
		--policy | -p | --certificate | --socket)
			COMPREPLY=($(compgen -f -- "$2"))
			compopt -o filenames 2>/dev/null
			return
			;;
		--name | -n | --ttl | --from | --var | --label | -l | --signer | --id) ;;
		*)
			[[ ${COMP_WORDS[2]} == @(show|extend|revoke) ]] &&
				words=$(vethguard session list 2>/dev/null | awk 'NR > 1 { print $1 }')
			;;
		esac
	elif [[ ${COMP_WORDS[1]} == doctor && $3 == @(--config|-c|--policy|-p) ]]; then
		COMPREPLY=($(compgen -f -- "$2"))
		compopt -o filenames 2>/dev/null
		return
	elif [[ ${COMP_WORDS[1]} == @(policy|audit|ca) && $COMP_CWORD -gt 2 && $3 != @(--var|--name|-n|--overlap|--sandbox|--since|--event|--anchor|-[sSea]) ]]; then
		COMPREPLY=($(compgen -f -- "$2"))
		compopt -o filenames 2>/dev/null
		return
	fi
	COMPREPLY=($(compgen -W "$words" -- "$2"))
}
complete -F _vethguard vethguard
