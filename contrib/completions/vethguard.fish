# SPDX-License-Identifier: Apache-2.0
# fish completion for vethguard; goes to /usr/share/fish/vendor_completions.d/

# Whether the words so far are these sub-commands.
function __vethguard_is
    set -l words (commandline -opc)
    test "$words[2]" = "$argv[1]"; or return 1
    test (count $argv) -eq 1; or test "$words[3]" = "$argv[2]"
end

# The guarded command and its arguments, as far as they are typed; false: run's own options are not over.
function __vethguard_guarded
    set -l words (commandline -opc)
    set -e words[1..2]
    while set -q words[1]
        switch $words[1]
            case --
                string escape -- $words[2..-1]
                return 0
            case -p -c -n -u -a -e --policy --var --config --name --user --audit --env
                set -e words[1]
            case '-*'
            case '*'
                string escape -- $words
                return 0
        end
        set -e words[1]
    end
    return 1
end

function __vethguard_run_options
    __vethguard_is run; and not __vethguard_guarded >/dev/null
end

# Behind the options the command's own completion takes over.
function __vethguard_complete_guarded
    set -l words (__vethguard_guarded)
    set -l begun $status
    set -l token (commandline -ct)
    test $begun -ne 0; and string match -q -- '-*' $token; and return
    complete -C (string join ' ' -- $words $token)
end

complete -c vethguard -f
set -l none 'test (count (commandline -opc)) -eq 1'
complete -c vethguard -n $none -a run -d 'Run a command behind the guard'
complete -c vethguard -n $none -a policy -d 'Check, explain and compare policies'
complete -c vethguard -n $none -a audit -d 'Show the audit log'
complete -c vethguard -n $none -a doctor -d 'What this machine can do'
complete -c vethguard -n $none -a help -d Help
complete -c vethguard -n $none -a version -d 'The version'

set -l run __vethguard_run_options
complete -c vethguard -n $run -s p -l policy -r -F -d 'The policy to enforce'
complete -c vethguard -n "$run; or __vethguard_is policy" -l var -x -d 'Value of a variable of the policy'
complete -c vethguard -n "$run; or __vethguard_is doctor" -s c -l config -r -F -d Settings
complete -c vethguard -n $run -s n -l name -x -d 'Name of the sandbox'
complete -c vethguard -n $run -s u -l user -x -a '(__fish_complete_users)' -d 'User to run as'
complete -c vethguard -n $run -s a -l audit -r -F -d 'Append the audit log to'
complete -c vethguard -n $run -l observe -d 'Refuse nothing but the floor'
complete -c vethguard -n $run -s e -l env -x -a '(set -xn)' -d 'Set or pass on a variable'
complete -c vethguard -n $run -l no-env -d 'Start from a small environment'
complete -c vethguard -n $run -l proxy-env -d 'Set the proxy variables'
complete -c vethguard -n $run -s v -l verbose -d 'Tell what is done'
complete -c vethguard -n $run -s h -l help -d Help
complete -c vethguard -n '__vethguard_is run' -a '(__vethguard_complete_guarded)'

set -l two 'test (count (commandline -opc)) -eq 2'
set -l more 'test (count (commandline -opc)) -gt 2'
complete -c vethguard -n "__vethguard_is policy; and $two" -a 'check explain diff'
complete -c vethguard -n "__vethguard_is policy; and $more" -F
complete -c vethguard -n '__vethguard_is policy' -l json -d 'As JSON'
complete -c vethguard -n "__vethguard_is audit; and $two" -a 'show verify'
complete -c vethguard -n "__vethguard_is audit; and $more" -F
set -l show '__vethguard_is audit show'
complete -c vethguard -n $show -s d -l denied -d 'Only what was refused'
complete -c vethguard -n $show -s s -l sandbox -x -d 'Of one sandbox'
complete -c vethguard -n $show -s S -l since -x -d 'Not older than'
complete -c vethguard -n "$show; or __vethguard_is doctor" -s j -l json -d 'As JSON'
complete -c vethguard -n '__vethguard_is audit verify' -s a -l anchor -x -d 'A hash that must be there'
complete -c vethguard -n '__vethguard_is policy; or __vethguard_is audit; or __vethguard_is doctor' -s h -l help -d Help
complete -c vethguard -n "__vethguard_is help; and $two" -a 'run policy audit doctor version'
