# SPDX-License-Identifier: Apache-2.0
# fish completion for vethguard; goes to /usr/share/fish/vendor_completions.d/

set -l commands run policy audit doctor help version
complete -c vethguard -f
complete -c vethguard -n "not __fish_seen_subcommand_from $commands" -a run -d 'Run a command behind the guard'
complete -c vethguard -n "not __fish_seen_subcommand_from $commands" -a policy -d 'Check and explain policies'
complete -c vethguard -n "not __fish_seen_subcommand_from $commands" -a audit -d 'Show the audit log'
complete -c vethguard -n "not __fish_seen_subcommand_from $commands" -a doctor -d 'What this machine can do'
complete -c vethguard -n "not __fish_seen_subcommand_from $commands" -a help -d 'Help'
complete -c vethguard -n "not __fish_seen_subcommand_from $commands" -a version -d 'The version'

set -l run '__fish_seen_subcommand_from run'
complete -c vethguard -n $run -s p -l policy -r -F -d 'The policy to enforce'
complete -c vethguard -n $run -s c -l config -r -F -d Settings
complete -c vethguard -n $run -s n -l name -x -d 'Name of the sandbox'
complete -c vethguard -n $run -s u -l user -x -a '(__fish_complete_users)' -d 'User to run as'
complete -c vethguard -n $run -s a -l audit -r -F -d 'Append the audit log to'
complete -c vethguard -n $run -l observe -d 'Refuse nothing but the floor'
complete -c vethguard -n $run -s e -l env -x -a '(set -xn)' -d 'Set or pass on a variable'
complete -c vethguard -n $run -l no-env -d 'Start from a small environment'
complete -c vethguard -n $run -l proxy-env -d 'Set the proxy variables'
complete -c vethguard -n $run -s v -l verbose -d 'Tell what is done'
complete -c vethguard -n $run -s h -l help -d Help
complete -c vethguard -n $run -a '(__fish_complete_subcommand)'

set -l policy '__fish_seen_subcommand_from policy'
complete -c vethguard -n "$policy; and not __fish_seen_subcommand_from check explain" -a 'check explain'
complete -c vethguard -n "$policy; and __fish_seen_subcommand_from check explain" -F
complete -c vethguard -n $policy -l json -d 'As JSON'

set -l audit '__fish_seen_subcommand_from audit'
complete -c vethguard -n "$audit; and not __fish_seen_subcommand_from show verify" -a 'show verify'
complete -c vethguard -n "$audit; and __fish_seen_subcommand_from show verify" -F
complete -c vethguard -n $audit -s d -l denied -d 'Only what was refused'
complete -c vethguard -n $audit -s s -l sandbox -x -d 'Of one sandbox'
complete -c vethguard -n $audit -s S -l since -x -d 'Not older than'
complete -c vethguard -n $audit -s a -l anchor -x -d 'A hash that must be there'
complete -c vethguard -n "$audit; or __fish_seen_subcommand_from doctor" -l json -d 'As JSON'
complete -c vethguard -n '__fish_seen_subcommand_from help' -a 'run policy audit doctor version'
