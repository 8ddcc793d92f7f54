/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `vethguard attach` and its --help. */
#include <stdio.h>
#include <string.h>

#include "cli/attach/options.h"
#include "cli/commands.h"
#include "cli/option_wrong.h"
#include "vethguard/base/ip.h"
#include "vethguard/base/slice.h"

#define DAY_S 86400u
#define TTL_MAX_S (366u * DAY_S)

enum {
	INTERFACE,
	NETNS,
	PID,
	CONTAINER,
	LISTEN,
	LISTEN_MODE,
	LISTEN_OWNER,
	ENGINE,
	POLICY,
	NAME,
	ADDRESS,
	LABEL,
	VAR,
	TTL,
	OBSERVE,
	FILES,
	SOCKET,
	JSON,
	HELP
};

static const struct option_spec specs[] = {
        [INTERFACE] = {"interface", 'i', "NAME",
                "guard what is behind this interface of the host:\n"
                "a veth's outer end, a tap, a port of a bridge,\n"
                "or a bridge with all of its ports"},
        [NETNS] = {"netns", 0, "PATH", "guard this network namespace, by a link made into it"},
        [PID] = {"pid", 0, "PID", "guard the network namespace of this process"},
        [CONTAINER] = {"container", 'c', "NAME",
                "guard a container (name or id); it has to run\n"
                "with --network none"},
        [LISTEN] = {"listen", 0, "PATH",
                "make a Unix socket there, the only way out of a\n"
                "sandbox without a network: HTTP proxy and SOCKS5"},
        [LISTEN_MODE] = {"listen-mode", 0, "MODE", "permissions of that socket; default: 600"},
        [LISTEN_OWNER] = {"listen-owner", 0, "USER[:GROUP]", "owner of that socket; default: you"},
        [ENGINE] = {"engine", 0, "NAME",
                "docker or podman; default: the one that has the container"},
        [POLICY] = {"policy", 'p', "FILE", "the policy to enforce (required)"},
        [NAME] = {"name", 'n', "NAME",
                "the sandbox's name; default: the container's, or\n"
                "one is made up"},
        [ADDRESS] = {"address", 0, "IP",
                "with --interface: the sandbox's address, once for\n"
                "each family; default: any of the interface's network"},
        [LABEL] = {"label", 'l', "KEY=VALUE", "a label, to find the sandbox by; may be repeated"},
        [VAR] = {"var", 0, "KEY=VALUE",
                "a variable of the policy's hosts and paths; may\n"
                "be repeated"},
        [TTL] = {"ttl", 0, "TIME",
                "detach by itself after 90s, 30m, 2h, 7d; a number\nalone: seconds"},
        [OBSERVE] = {"observe", 0, NULL,
                "refuse only what no policy can permit, and log\nwhat the policy would have "
                "refused"},
        [FILES] = {"files", 0, NULL,
                "with --pid: write resolv.conf and the CA into\nits file system; --container "
                "always does so"},
        [SOCKET] = CONTROL_SPEC_SOCKET,
        [JSON] = CONTROL_SPEC_JSON,
        [HELP] = CONTROL_SPEC_HELP,
        {NULL, 0, NULL, NULL},
};

static void help(void)
{
	fputs("Usage: vethguard attach --container NAME|--pid PID|--netns PATH|--interface NAME|\n"
	      "                        --listen PATH --policy FILE [OPTIONS]\n\n"
	      "Puts the guard on a sandbox that somebody else made. The daemon vethguardd keeps\n"
	      "it until 'vethguard detach', its --ttl, or the end of the process.\n\nOptions:\n",
	        stdout);
	options_print(specs, stdout);
	fputs("\nExamples:\n"
	      "  docker run -d --network none --name agent my-image\n"
	      "  vethguard attach --container agent --policy agent.yaml --ttl 2h\n"
	      "  vethguard attach --netns /run/netns/build --policy ci.yaml --name build-7\n"
	      "  vethguard attach --interface tap0 --address 10.7.0.2 --policy vm.yaml\n"
	      "  vethguard attach --listen /run/agent/out.sock --policy agent.yaml\n"
	      "  vethguard attach --listen vsock:7:3128 --policy vm.yaml --name vm-7\n\n"
	      "Exit status: 0 done; 1 the daemon refused; 2 wrong usage; 3 the daemon cannot be\n"
	      "reached.\n",
	        stdout);
}

bool attach_ttl_read(const char *text, uint64_t *out)
{
	static const struct {
		char unit;
		uint64_t seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', DAY_S}};
	size_t n = strlen(text);
	uint64_t factor = 1;

	for (size_t i = 0; n > 0 && i < sizeof(units) / sizeof(units[0]); i++) {
		if (text[n - 1] != units[i].unit)
			continue;
		factor = units[i].seconds;
		n--;
		break;
	}
	if (!slice_to_u64(slice_of(text, n), TTL_MAX_S / factor, out))
		return false;
	*out *= factor;
	return *out > 0;
}

static bool add(struct attach_words *words, const char *option, const char *value, bool pair)
{
	const char *equals = strchr(value, '=');

	if (pair && (!equals || equals == value))
		return option_wrong(option, value, "write KEY=VALUE");
	for (size_t i = 0; pair && i < words->count; i++)
		if (strncmp(words->items[i], value, (size_t)(equals - value) + 1) == 0)
			return option_wrong(option, value, "that key was given before");
	if (words->count == ATTACH_WORDS_MAX)
		return option_wrong(option, value, "given too many times");
	words->items[words->count++] = value;
	return true;
}

static bool take_address(struct attach_options *o, const char *value)
{
	struct ip address;

	if (strchr(value, '/'))
		return option_wrong("address", value,
		        "write the sandbox's own address, without a prefix length");
	if (!ip_parse(slice_from_string(value), &address))
		return option_wrong("address", value, "no IP address");
	return add(&o->addresses, "address", value, false);
}

static bool take_pid(struct attach_options *o, const char *value)
{
	uint64_t pid;

	if (!slice_to_u64(slice_from_string(value), INT32_MAX, &pid) || pid == 0)
		return option_wrong("pid", value, "no process id");
	if (o->pid)
		return option_wrong("pid", value, "it is given twice; give it once");
	o->pid = (int)pid;
	return true;
}

static bool take_ttl(struct attach_options *o, const char *value)
{
	return attach_ttl_read(value, &o->ttl_s) ||
	       option_wrong("ttl", value, "not a duration; write 90s, 30m, 2h or 7d, at most 366d");
}

static bool take_engine(struct attach_options *o, const char *value)
{
	o->engine = value;
	return strcmp(value, "docker") == 0 || strcmp(value, "podman") == 0 ||
	       option_wrong("engine", value, "docker or podman");
}

bool attach_option_take(void *context, const char *option, const char *value)
{
	struct attach_options *o = context;
	struct {
		const char *name;
		const char **place;
	} texts[] = {{"interface", &o->interface}, {"netns", &o->netns},
	        {"container", &o->container}, {"policy", &o->policy}, {"name", &o->name},
	        {"listen", &o->listen}, {"listen-mode", &o->listen_mode},
	        {"listen-owner", &o->listen_owner}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (strcmp(option, texts[i].name) != 0)
			continue;
		if (*texts[i].place)
			return option_wrong(option, value, "it is given twice; give it once");
		*texts[i].place = value;
		return true;
	}
	if (strcmp(option, "pid") == 0)
		return take_pid(o, value);
	if (strcmp(option, "ttl") == 0)
		return take_ttl(o, value);
	if (strcmp(option, "engine") == 0)
		return take_engine(o, value);
	if (strcmp(option, "address") == 0)
		return take_address(o, value);
	if (strcmp(option, "label") == 0)
		return add(&o->labels, option, value, true);
	if (strcmp(option, "var") == 0)
		return add(&o->vars, option, value, true);
	o->observe = o->observe || strcmp(option, "observe") == 0;
	o->files = o->files || strcmp(option, "files") == 0;
	return true;
}

static int complain(const char *text)
{
	fprintf(stderr, "vethguard: error: %s\nSee 'vethguard attach --help'.\n", text);
	return CLI_USAGE;
}

int attach_options_read(char **argv, struct attach_options *o)
{
	int kinds;

	*o = (struct attach_options){0};
	if (!control_line_read(&o->line, "vethguard attach", specs, argv, attach_option_take, o))
		return CLI_USAGE;
	if (o->line.help) {
		help();
		return 0;
	}
	kinds = !!o->interface + !!o->netns + !!o->pid + !!o->container + !!o->listen;
	if (o->line.name_count)
		return complain("attach takes options only; a sandbox is named with --name, a "
		                "policy with --policy");
	if (kinds != 1)
		return complain(
		        kinds ? "give only one of --container, --pid, --netns, --interface and "
		                "--listen"
		              : "what is to be guarded? Name it with --container, --pid, "
		                "--netns, --interface or --listen");
	if (!o->policy || !*o->policy)
		return complain("which policy? Name one with --policy");
	if (o->name && !*o->name)
		return complain("--name is empty; without it, a name is made up");
	if (o->engine && !o->container)
		return complain("--engine needs --container");
	if (o->addresses.count && !o->interface)
		return complain("--address needs --interface; other sandboxes get theirs from the "
		                "pools of the configuration");
	if ((o->listen_mode || o->listen_owner) && !o->listen)
		return complain("--listen-mode and --listen-owner need --listen");
	if (o->files && !o->pid)
		return complain("--files needs --pid; --container always writes them");
	o->files = o->files || o->container;
	return -1;
}
