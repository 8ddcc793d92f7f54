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

# The presets that `vethguard policy new` can use.
function __vethguard_presets
    vethguard policy new --help 2>/dev/null | string replace -rf '^(Agents and APIs|Packages): ' '' | string replace -ra ',| and ' ' ' | string split -n ' ' | string match -v none
end

# Whether this many words that are not options follow `vethguard policy explain`.
function __vethguard_explains
    __vethguard_is policy explain; or return 1
    set -l words (commandline -opc)
    set -e words[1..3]
    set -l n 0
    while set -q words[1]
        switch $words[1]
            case --var --config
                set -e words[1]
            case '-*'
            case '*'
                set n (math $n + 1)
        end
        set -e words[1]
    end
    test $n $argv
end

complete -c vethguard -f
set -l none 'test (count (commandline -opc)) -eq 1'
complete -c vethguard -n $none -a run -d 'Run a command behind the guard'
complete -c vethguard -n $none -a attach -d 'Guard what somebody else made'
complete -c vethguard -n $none -a detach -d 'End that guard'
complete -c vethguard -n $none -a list -d 'What the daemon guards'
complete -c vethguard -n $none -a show -d 'All about one sandbox'
complete -c vethguard -n $none -a env -d 'What to set inside of a sandbox'
complete -c vethguard -n $none -a reload -d 'Put changed policies in force'
complete -c vethguard -n $none -a pause -d 'Refuse everything at once'
complete -c vethguard -n $none -a resume -d 'Go on after a pause'
complete -c vethguard -n $none -a ask -d 'Requests that wait for approval'
complete -c vethguard -n $none -a approve -d 'Let one of them go on'
complete -c vethguard -n $none -a refuse -d 'Refuse it, or end an approval'
complete -c vethguard -n $none -a stats -d 'What sandboxes have done and hold'
complete -c vethguard -n $none -a prepare -d 'Make namespaces ready'
complete -c vethguard -n $none -a claim -d 'Guard a prepared namespace under a policy'
complete -c vethguard -n $none -a release -d 'End a claimed sandbox, and prepare its namespace again'
complete -c vethguard -n $none -a session -d 'Sandboxes elsewhere, by the gateway'
complete -c vethguard -n $none -a probe -d 'A script that tries every way out'
complete -c vethguard -n $none -a sidecar -d 'Guard a pod or group from inside of it'
complete -c vethguard -n $none -a policy -d 'Write, check, explain and compare policies'
complete -c vethguard -n $none -a ca -d 'The CAs that sandboxes trust'
complete -c vethguard -n $none -a credential -d 'What credentials do'
complete -c vethguard -n $none -a audit -d 'Show and verify the audit log, suggest rules from it'
complete -c vethguard -n $none -a doctor -d 'What this machine can do'
complete -c vethguard -n $none -a help -d Help
complete -c vethguard -n $none -a version -d 'The version'
complete -c vethguard -n $none -s h -l help -d Help
complete -c vethguard -n $none -l version -d 'The version'

complete -c vethguard -n '__vethguard_is probe' -l tcp -x -d 'TCP targets'
complete -c vethguard -n '__vethguard_is probe' -l name -x -d 'A name'
complete -c vethguard -n '__vethguard_is probe' -l udp -x -d 'UDP targets'
complete -c vethguard -n '__vethguard_is probe' -l dns -x -d 'Resolvers'
complete -c vethguard -n '__vethguard_is probe' -l icmp -x -d 'Addresses'
complete -c vethguard -n '__vethguard_is probe' -l metadata -x -d 'Metadata services'
complete -c vethguard -n '__vethguard_is probe' -l api -x -d 'API of the provider'
complete -c vethguard -n '__vethguard_is probe' -l gateway -x -d 'What has to be reached'
complete -c vethguard -n '__vethguard_is probe' -l timeout -x -d 'Seconds of each try'
complete -c vethguard -n '__vethguard_is probe' -l limit -x -d 'Seconds of all'
complete -c vethguard -n '__vethguard_is probe' -l without -x -a 'tcp tcp6 name udp udp6 dns dns6 icmp icmp6 metadata api proxy socket' -d 'Ways to leave out'
complete -c vethguard -n '__vethguard_is probe' -l tools -x -a 'curl python3 node bash nc wget dig nslookup ping' -d 'Use only these'
complete -c vethguard -n '__vethguard_is probe' -l json -d 'As JSON'
complete -c vethguard -n '__vethguard_is probe' -s h -l help -d Help
set -l run __vethguard_run_options
complete -c vethguard -n "$run; or __vethguard_is doctor" -s p -l policy -r -F -d 'The policy to enforce'
complete -c vethguard -n '__vethguard_is doctor' -s s -l socket -r -F -d 'Daemon of --roles'
complete -c vethguard -n '__vethguard_is doctor' -l roles -d 'How each program is confined'
complete -c vethguard -n $run -l var -x -d 'Value of a variable of the policy'
complete -c vethguard -n "__vethguard_is policy; and test (count (commandline -opc)) -gt 2; and not __vethguard_is policy new" -l var -x -d 'Value of a variable of the policy'
complete -c vethguard -n "$run; or __vethguard_is doctor" -s c -l config -r -F -d Settings
complete -c vethguard -n $run -s n -l name -x -d 'Name of the sandbox'
complete -c vethguard -n $run -s u -l user -x -a '(__fish_complete_users)' -d 'User to run as'
complete -c vethguard -n $run -s a -l audit -r -F -d 'Append the audit log to'
complete -c vethguard -n $run -l observe -d 'Refuse only what no policy can permit'
complete -c vethguard -n $run -s e -l env -x -a '(set -xn)' -d 'Set or pass on a variable'
complete -c vethguard -n $run -l clean-env -d 'Keep only the variables that programs need'
complete -c vethguard -n $run -l keep-env -x -d 'Keep this variable too'
complete -c vethguard -n $run -l no-env -d 'The older name of --clean-env'
complete -c vethguard -n $run -l proxy-env -d 'Set the proxy variables'
complete -c vethguard -n $run -l device -x -a '(__fish_complete_path /dev/)' -d 'Let the command use a device'
complete -c vethguard -n $run -s v -l verbose -d 'Log what is done'
complete -c vethguard -n $run -s h -l help -d Help
complete -c vethguard -n '__vethguard_is run' -a '(__vethguard_complete_guarded)'

# Names of the sandboxes that the daemon guards.
function __vethguard_names
    command -q vethguard; and vethguard list 2>/dev/null | awk 'NR > 1 { print $1 }'
end

function __vethguard_any
    for command in $argv
        __vethguard_is $command; and return 0
    end
    return 1
end

set -l control '__vethguard_any attach detach list show env reload pause resume ask approve refuse stats prepare claim release'
complete -c vethguard -n $control -l socket -r -F -d 'Socket of the daemon'
complete -c vethguard -n $control -s j -l json -d 'As JSON'
complete -c vethguard -n $control -s h -l help -d Help
complete -c vethguard -n '__vethguard_any detach show env reload pause resume stats release' -a '(__vethguard_names)'
complete -c vethguard -n '__vethguard_any attach reload claim' -s p -l policy -r -F -d 'The policy to enforce'
set -l attach '__vethguard_is attach'
complete -c vethguard -n $attach -s i -l interface -x -a '(command ls /sys/class/net 2>/dev/null)' -d 'What is behind this interface'
complete -c vethguard -n $attach -l netns -r -F -d 'This network namespace'
complete -c vethguard -n $attach -l pid -x -d 'The namespace of this process'
complete -c vethguard -n $attach -l listen -r -F -d 'A Unix socket to be made'
complete -c vethguard -n $attach -l listen-mode -x -d 'Its permissions'
complete -c vethguard -n $attach -l listen-owner -x -d 'Its owner'
complete -c vethguard -n $attach -s c -l container -x -d 'A container with --network none'
complete -c vethguard -n $attach -l engine -x -a 'docker podman' -d 'Who runs the container'
complete -c vethguard -n $attach -s n -l name -x -d 'Name of the sandbox'
complete -c vethguard -n $attach -l address -x -d 'Its address'
complete -c vethguard -n $attach -s l -l label -x -d 'A label'
complete -c vethguard -n $attach -l var -x -d 'A variable of the policy'
complete -c vethguard -n $attach -l ttl -x -d 'Detach after'
complete -c vethguard -n $attach -l observe -d 'Refuse only what no policy can permit'
complete -c vethguard -n $attach -l files -d 'Write resolv.conf and the CA inside'
set -l claim '__vethguard_is claim'
complete -c vethguard -n $claim -l netns -r -F -d 'This prepared namespace'
complete -c vethguard -n $claim -l like -x -a '(__vethguard_names)' -d 'A clone of this sandbox'
complete -c vethguard -n $claim -s l -l label -x -d 'A label'
complete -c vethguard -n $claim -l var -x -d 'A variable of the policy'
complete -c vethguard -n $claim -l ttl -x -d 'End after'
complete -c vethguard -n $claim -l observe -d 'Refuse only what no policy can permit'
complete -c vethguard -n $claim -l no-wait -d 'Do not wait until its worker serves'
set -l prepare '__vethguard_is prepare'
complete -c vethguard -n $prepare -s n -l count -x -d 'How many are to be ready'
complete -c vethguard -n $prepare -l addresses -x -a 'same own' -d 'Of all the same, or of each its own'
complete -c vethguard -n $prepare -l remove -d 'Take them away'
complete -c vethguard -n '__vethguard_any prepare release' -l netns-dir -r -F -d 'Where they are'
complete -c vethguard -n '__vethguard_any prepare release' -l tap -x -d 'A tap device inside'
complete -c vethguard -n '__vethguard_any prepare release' -l prefix -x -d 'Beginning of their names'
complete -c vethguard -n '__vethguard_is release' -l keep -d 'Leave its namespace as it is'
set -l env '__vethguard_is env'
complete -c vethguard -n $env -s f -l format -x -a 'shell docker json pem e2b modal daytona deno runloop langsmith openai-agents' -d 'For whom'
complete -c vethguard -n $env -l token-file -r -F -d 'Token of a session'
complete -c vethguard -n $env -l proxy-env -d 'The proxy variables too'
complete -c vethguard -n $env -l ca-bundle -r -F -d 'Bundle inside'
complete -c vethguard -n $env -l ca -r -F -d 'CA inside'
complete -c vethguard -n '__vethguard_is detach' -s y -l yes -d 'With --all: do not ask'
complete -c vethguard -n '__vethguard_any detach reload pause resume' -s a -l all -d 'Every sandbox'
complete -c vethguard -n '__vethguard_any pause refuse' -s r -l reason -x -d 'Why'
complete -c vethguard -n '__vethguard_is ask' -s w -l watch -d 'As they come'
complete -c vethguard -n '__vethguard_any approve refuse' -a '(vethguard ask 2>/dev/null | string match -r "^[0-9a-f]{16}")'
set -l approve '__vethguard_is approve'
complete -c vethguard -n $approve -s f -l for -x -d 'For this time'
complete -c vethguard -n $approve -s a -l always -d 'Without end'
complete -c vethguard -n $approve -l rule -d 'All that the rule asks about'

set -l two 'test (count (commandline -opc)) -eq 2'
set -l more 'test (count (commandline -opc)) -gt 2'
complete -c vethguard -n "__vethguard_is policy; and $two" -a 'check explain diff new'
complete -c vethguard -n "__vethguard_is policy; and $more; and not __vethguard_explains -gt 0; and not __vethguard_is policy new" -F
complete -c vethguard -n '__vethguard_explains -eq 1' -a 'GET HEAD POST PUT PATCH DELETE OPTIONS CONNECT' -d Method
complete -c vethguard -n "__vethguard_is policy; and $more; and not __vethguard_is policy new" -s j -l json -d 'As JSON'
set -l new '__vethguard_is policy new'
complete -c vethguard -n $new -s a -l agent -x -a '(__vethguard_presets)' -d 'Preset of an agent or API'
complete -c vethguard -n $new -s p -l packages -x -a '(__vethguard_presets)' -d 'Preset of packages'
complete -c vethguard -n $new -s H -l host -x -d 'Another destination'
complete -c vethguard -n $new -s n -l name -x -d 'Name of the policy'
complete -c vethguard -n $new -s m -l mode -x -a 'enforce observe' -d 'What becomes of the rest'
complete -c vethguard -n $new -s o -l output -r -F -d 'File to write'
set -l resolving '__vethguard_is policy check; or __vethguard_is policy explain'
complete -c vethguard -n '__vethguard_is policy explain' -s H -l header -x -d 'A field of the request'
complete -c vethguard -n '__vethguard_is policy explain' -l body -r -d 'The body of the request'
complete -c vethguard -n $resolving -l resolve -d 'Ask where the hosts lead'
complete -c vethguard -n $resolving -l config -r -F -d 'Resolver, hosts and permit'
set -l credential '__vethguard_is credential'
complete -c vethguard -n "$credential; and $two" -a 'list show check rotate revoke'
complete -c vethguard -n "$credential; and $more" -l socket -r -F -d 'Of the daemon'
complete -c vethguard -n "$credential; and $more" -s j -l json -d 'As JSON'
complete -c vethguard -n $credential -s h -l help -d Help
complete -c vethguard -n "$credential; and $more" -a '(__vethguard_names)'
set -l sidecar '__vethguard_is sidecar init; or __vethguard_is sidecar run'
complete -c vethguard -n "__vethguard_is sidecar; and $two" -a 'init run'
complete -c vethguard -n $sidecar -s u -l uid -x -d 'User id of the guard'
complete -c vethguard -n $sidecar -s c -l config -r -F -d Settings
complete -c vethguard -n $sidecar -l dns-port -x -d 'Of the name service'
complete -c vethguard -n $sidecar -l loopback -x -a 'all none' -d 'Ports that members may use'
complete -c vethguard -n $sidecar -l inbound -x -d 'Port that others may reach'
complete -c vethguard -n $sidecar -l udp -x -d 'Port of the udp rules'
complete -c vethguard -n $sidecar -s v -l verbose -d 'Log what is done'
complete -c vethguard -n '__vethguard_is sidecar' -s h -l help -d Help
complete -c vethguard -n '__vethguard_is sidecar init' -l check -d 'Only look whether it is in force'
set -l guard '__vethguard_is sidecar run'
complete -c vethguard -n $guard -s p -l policy -r -F -d 'The policy to enforce'
complete -c vethguard -n $guard -l var -x -d 'Value of a variable of the policy'
complete -c vethguard -n $guard -s n -l name -x -d 'Name in the log'
complete -c vethguard -n $guard -s a -l audit -r -F -d 'Append the log here'
complete -c vethguard -n $guard -l observe -d 'Refuse only what no policy can permit'
complete -c vethguard -n $guard -s s -l share -r -F -d 'Directory for the containers'
complete -c vethguard -n $guard -l share-as -r -F -d 'Where they have it'
complete -c vethguard -n $guard -l proxy-env -d 'Name the guard as proxy, too'
complete -c vethguard -n $guard -l watch -d 'Reload when the file changes'
complete -c vethguard -n $guard -l init -d 'Set the fence first'
complete -c vethguard -n "__vethguard_is audit; and $two" -a 'show suggest verify'
complete -c vethguard -n "__vethguard_is audit; and $more" -F
set -l show '__vethguard_is audit show'
complete -c vethguard -n $show -s d -l denied -d 'Only what was refused'
set -l pick '__vethguard_is audit show; or __vethguard_is audit suggest'
complete -c vethguard -n $pick -s s -l sandbox -x -d 'Of one sandbox'
complete -c vethguard -n $pick -s S -l since -x -d 'Not older than'
complete -c vethguard -n $pick -s e -l event -x -d 'With this id'
complete -c vethguard -n "$pick; or __vethguard_is doctor" -s j -l json -d 'As JSON'
set -l suggest '__vethguard_is audit suggest'
complete -c vethguard -n $suggest -s p -l policy -r -F -d 'Leave out what it allows'
complete -c vethguard -n $suggest -l var -x -d 'A variable of the policy'
complete -c vethguard -n "__vethguard_is audit; and $more" -l socket -r -F -d 'Of the daemon, without a file'
complete -c vethguard -n '__vethguard_is audit verify' -s a -l anchor -x -d 'A hash that must be there'
complete -c vethguard -n "__vethguard_is ca; and $two" -a 'show export csr install rotate'
complete -c vethguard -n '__vethguard_is ca install' -F
complete -c vethguard -n '__vethguard_is ca install' -l root -r -F -d 'The root that its chain ends at'
complete -c vethguard -n '__vethguard_is ca install; or __vethguard_is ca rotate' -l overlap -x -d 'How long the earlier one stays trusted'
complete -c vethguard -n '__vethguard_is ca csr; or __vethguard_is ca rotate' -s n -l name -x -d 'Common name of the request'
complete -c vethguard -n "__vethguard_is ca; and $more" -l socket -r -F -d 'Of the daemon'
complete -c vethguard -n "__vethguard_is ca; and $more" -s j -l json -d 'As JSON'
complete -c vethguard -n '__vethguard_is policy; or __vethguard_is audit; or __vethguard_is ca; or __vethguard_is session; or __vethguard_is doctor' -s h -l help -d Help
complete -c vethguard -n "__vethguard_is help; and $two" -a 'run attach detach list show env reload pause resume ask approve refuse stats prepare claim release session probe sidecar policy ca credential audit doctor version'
complete -c vethguard -n "__vethguard_is session; and $two" -a 'create list show extend certificate revoke'
complete -c vethguard -n '__vethguard_is session show; or __vethguard_is session extend; or __vethguard_is session certificate; or __vethguard_is session revoke' -a '(__vethguard_names)'
complete -c vethguard -n '__vethguard_is session certificate' -s o -l out -r -F -d 'Of the new files, without .pem and .key'
complete -c vethguard -n '__vethguard_is session certificate' -l ttl -x -d 'How long it is valid'
complete -c vethguard -n '__vethguard_is session revoke' -l signer -x -d 'Whose signed tokens'
complete -c vethguard -n '__vethguard_is session revoke' -l id -x -d 'Their jti, or session claim'
set -l create '__vethguard_is session create'
complete -c vethguard -n $create -s p -l policy -r -F -d 'The policy to enforce'
complete -c vethguard -n $create -s n -l name -x -d 'Name of the session'
complete -c vethguard -n $create -l from -x -d 'Network it may come from'
complete -c vethguard -n $create -l certificate -r -F -d 'Certificate that proves it'
complete -c vethguard -n $create -l by-address -d 'The address of its clients proves it'
complete -c vethguard -n $create -l label -x -d 'A label'
complete -c vethguard -n $create -l var -x -d 'A variable of the policy'
complete -c vethguard -n $create -l observe -d 'Refuse only what no policy can permit'
complete -c vethguard -n "$create; or __vethguard_is session extend" -l ttl -x -d 'How long it lasts'
complete -c vethguard -n "__vethguard_is session; and $more" -l socket -r -F -d 'Of the daemon'
complete -c vethguard -n "__vethguard_is session; and $more" -s j -l json -d 'As JSON'
