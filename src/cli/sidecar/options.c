/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines of `vethguard sidecar init` and `run`. Both have one table, of which each shows
 * and takes its own part. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/option_wrong.h"
#include "cli/sidecar/sidecar.h"
#include "cli/variable_option.h"
#include "vethguard/base/options.h"
#include "vethguard/base/slice.h"
#include "vethguard/fence/fence.h"
#include "vethguard/policy/config.h"
#include "vethguard/wire/message.h"

#define DNS_PORT_OF_ALL 53
#define UID                                                                 \
	{                                                                   \
		"uid", 'u', "UID", "the guard's user id, and nobody else's" \
	}
#define CONFIG                                                                     \
	{                                                                          \
		"config", 'c', "FILE", "settings; init and run need the same file" \
	}
#define DNS_PORT                                                                    \
	{                                                                           \
		"dns-port", 0, "PORT", "of the guard's name service; default: 7653" \
	}
#define LOOPBACK                                                                  \
	{                                                                         \
		"loopback", 0, "WHAT",                                            \
		        "ports of the group that its members may use: all (the\n" \
		        "default), none, or TCP ports: 8080,5432"                 \
	}
#define INBOUND                                                                         \
	{                                                                               \
		"inbound", 0, "PORT",                                                   \
		        "let others reach this TCP port of the group; may be\nrepeated" \
	}
#define UDP                                                                            \
	{                                                                              \
		"udp", 0, "PORT",                                                      \
		        "a port of the policy's udp:// rules; may be\nrepeated; init " \
		        "and run need the same"                                        \
	}
#define VERBOSE                                                            \
	{                                                                  \
		"verbose", 'v', NULL, "log what is done; twice: in detail" \
	}
#define HELP                                   \
	{                                      \
		"help", 'h', NULL, "this text" \
	}

static const struct option_spec init_specs[] = {UID, CONFIG, DNS_PORT, LOOPBACK, INBOUND, UDP,
        {"check", 0, NULL, "only look whether the fence is in force; change nothing"}, VERBOSE,
        HELP, {NULL, 0, NULL, NULL}};

static const struct option_spec run_specs[] = {
        {"policy", 'p', "FILE", "the policy to enforce (required)"},
        {"var", 0, "NAME=VALUE", "the value of ${NAME} in the policy; may be repeated"}, CONFIG,
        {"name", 'n', "NAME", "the sandbox's name in the audit log"},
        {"audit", 'a', "FILE",
                "append the audit log here; default: what the\n"
                "configuration says, else no file"},
        {"observe", 0, NULL,
                "refuse only what no policy can permit, and log\nwhat the policy would have "
                "refused"},
        {"share", 's', "DIR", "write CA, bundle and variables for the sandbox's\ncontainers here"},
        {"share-as", 0, "PATH", "where those containers have DIR; default: the same path"},
        {"proxy-env", 0, NULL, "let the variables name the guard as their proxy, too"},
        {"watch", 0, NULL,
                "reload the policy when one of its files changes\n"
                "(looked at every 5 seconds); SIGHUP does it at any\n"
                "time"},
        {"init", 0, NULL,
                "set the fence first, as 'sidecar init' does, then\n"
                "give up all rights and become --uid"},
        UID, DNS_PORT, LOOPBACK, INBOUND, UDP, VERBOSE, HELP, {NULL, 0, NULL, NULL}};

static void help_init(void)
{
	fputs("Usage: vethguard sidecar init --uid UID [OPTIONS]\n\n"
	      "Sets the fence in the network namespace of a pod or group: only the user UID gets\n"
	      "out; TCP and DNS of everybody else go to the guard, the rest is refused. Needs\n"
	      "CAP_NET_ADMIN, returns when the fence is in force and verified. The rules stay\n"
	      "as long as the namespace.\n\nOptions:\n",
	        stdout);
	options_print(init_specs, stdout);
	fputs("\nExamples:\n"
	      "  vethguard sidecar init --uid 1337\n"
	      "  vethguard sidecar init --uid 1337 --loopback none --inbound 8080\n"
	      "  vethguard sidecar init --uid 1337 --check\n\n"
	      "Exit status: 0 the fence is in force, 1 it is not, 2 wrong usage.\n",
	        stdout);
}

static void help_run(void)
{
	fputs("Usage: vethguard sidecar run --policy FILE [OPTIONS]\n"
	      "\n"
	      "Runs the guard of a pod or group whose fence 'vethguard sidecar init' has set: as "
	      "the\n"
	      "user that was named there, without any capability, until SIGTERM. When it ends, "
	      "all\n"
	      "other users are cut off.\n"
	      "\n"
	      "Options:\n",
	        stdout);
	options_print(run_specs, stdout);
	fputs("\nExamples:\n"
	      "  vethguard sidecar run --policy agent.yaml --share /share\n"
	      "  vethguard sidecar run --policy agent.yaml --share /share --audit "
	      "/log/agent.jsonl\n"
	      "  vethguard sidecar run --init --uid 1337 --policy agent.yaml --share /share\n\n"
	      "Exit status: 0 after SIGTERM, 125 it could not start or go on.\n",
	        stdout);
}

static bool take_port(struct slice text, uint16_t *out)
{
	uint64_t port;

	if (!slice_to_u64(text, 65535, &port) || port == 0)
		return false;
	*out = (uint16_t)port;
	return true;
}

static bool take_uid(struct sidecar_options *o, const char *value)
{
	uint64_t uid;

	if (!slice_to_u64(slice_from_string(value), INT32_MAX, &uid) || uid == 0)
		return option_wrong("uid", value, "not the number of a user other than root");
	o->fence.uid = (uint32_t)uid;
	o->has_uid = true;
	return true;
}

static bool take_loopback(struct sidecar_options *o, const char *value)
{
	static const char rule[] = "write all, none, or up to 8 ports: 8080,5432";
	const char *at = value;

	o->has_loopback = true;
	o->fence.loopback_count = 0;
	o->fence.loopback_all = strcmp(value, "all") == 0;
	if (o->fence.loopback_all || strcmp(value, "none") == 0)
		return true;
	for (;;) {
		size_t n = strcspn(at, ",");

		if (o->fence.loopback_count == FENCE_SHARED_PORTS_MAX ||
		        !take_port(
		                slice_of(at, n), &o->fence.loopback_ports[o->fence.loopback_count]))
			return option_wrong("loopback", value, rule);
		o->fence.loopback_count++;
		if (at[n] == '\0')
			return true;
		at += n + 1;
	}
}

static bool add_port(
        const char *name, const char *value, uint16_t ports[FENCE_SHARED_PORTS_MAX], size_t *count)
{
	if (*count == FENCE_SHARED_PORTS_MAX)
		return option_wrong(name, value, "more than 8 ports");
	if (!take_port(slice_from_string(value), &ports[*count]))
		return option_wrong(name, value, "not a port");
	(*count)++;
	return true;
}

static bool take_udp(struct sidecar_options *o, const char *value)
{
	if (!add_port("udp", value, o->fence.udp_ports, &o->fence.udp_count))
		return false;
	return o->fence.udp_ports[o->fence.udp_count - 1] != DNS_PORT_OF_ALL ||
	       option_wrong("udp", value, "port 53 is the name service's");
}

/* Options of the fence, which both commands have. */
static bool take_fence(struct sidecar_options *o, const char *name, const char *value)
{
	if (strcmp(name, "uid") == 0)
		return take_uid(o, value);
	if (strcmp(name, "loopback") == 0)
		return take_loopback(o, value);
	if (strcmp(name, "inbound") == 0)
		return add_port(name, value, o->fence.inbound_ports, &o->fence.inbound_count);
	if (strcmp(name, "udp") == 0)
		return take_udp(o, value);
	if (strcmp(name, "dns-port") == 0)
		return take_port(slice_from_string(value), &o->fence.dns_port) ||
		       option_wrong("dns-port", value, "not a port");
	if (strcmp(name, "config") == 0)
		o->run.config = value;
	else if (strcmp(name, "check") == 0)
		o->check = true;
	else if (strcmp(name, "verbose") == 0)
		o->run.verbose++;
	return true;
}

static bool take_run(struct sidecar_options *o, const char *name, const char *value)
{
	const char **texts[] = {
	        &o->run.policy, &o->run.name, &o->run.audit, &o->share, &o->share_as};
	static const char *const names[] = {"policy", "name", "audit", "share", "share-as"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0) {
			*texts[i] = value;
			return true;
		}
	if (strcmp(name, "var") == 0)
		return variable_take(value, o->run.variables, &o->run.variable_count);
	if (strcmp(name, "observe") == 0)
		o->run.observe = true;
	else if (strcmp(name, "proxy-env") == 0)
		o->run.proxy_env = true;
	else if (strcmp(name, "init") == 0)
		o->init = true;
	else if (strcmp(name, "watch") == 0)
		o->watch = true;
	return take_fence(o, name, value);
}

static bool say(const char *text)
{
	fprintf(stderr, "vethguard: error: %s\n", text);
	return false;
}

static bool ports_differ(const struct fence_shared_spec *f)
{
	const uint16_t *lists[] = {f->loopback_ports, f->inbound_ports, f->udp_ports};
	const size_t counts[] = {f->loopback_count, f->inbound_count, f->udp_count};

	if (f->tcp_port == f->dns_port || f->dns_port == FENCE_WITNESS_PORT ||
	        f->dns_port == FENCE_WITNESS_REFUSED_PORT || f->tcp_port == FENCE_WITNESS_PORT ||
	        f->tcp_port == FENCE_WITNESS_REFUSED_PORT)
		return false;
	for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); l++)
		for (size_t i = 0; i < counts[l]; i++)
			if (lists[l][i] == f->tcp_port || lists[l][i] == f->dns_port)
				return false;
	return true;
}

/* Only the first fault is told: `vethguardd --check-config` tells all. */
static bool read_config(struct sidecar_options *o)
{
	static struct config config;
	static struct diag_list diags;
	struct policy_file_facts facts = {0};
	struct policy_reader reader =
	        policy_reader_private_files(policy_default_preset_dir(), &facts);
	int rc = 0;

	config_init(&config);
	if (o->run.config)
		rc = config_load(&reader, o->run.config, &config, &diags);
	if (rc)
		diag_print(&diags, stderr);
	o->fence.tcp_port = config.proxy_port;
	o->fence.synthetic4 = config.pool4;
	o->fence.synthetic6 = config.pool6;
	config_fini(&config);
	if (rc)
		return say("the configuration cannot be used");
	return ports_differ(&o->fence) || say("the guard's ports (proxy: port: of the "
	                                      "configuration, --dns-port, 7676, 7677) and "
	                                      "those of --loopback, --inbound and --udp have to "
	                                      "differ");
}

static bool is_complete(const struct sidecar_options *o, bool run)
{
	char shown[128];

	if (!run)
		return o->has_uid ||
		       say("which user is the guard? Name it, for example --uid 1337");
	if (!o->run.policy || o->run.policy[0] == '\0')
		return say("which policy? Name one with --policy");
	if (o->run.name && !message_name_is_plain(slice_from_string(o->run.name))) {
		fprintf(stderr, "vethguard: error: --name %s: " MESSAGE_NAME_RULE "\n",
		        slice_escape(slice_from_string(o->run.name), shown, sizeof(shown)),
		        MESSAGE_NAME_MAX);
		return false;
	}
	if (o->init && !o->has_uid)
		return say("--init needs the user to become, for example --uid 1337");
	if (!o->init && (o->has_uid || o->has_loopback || o->fence.inbound_count))
		return say(
		        "--uid, --loopback and --inbound belong to 'sidecar init', or to --init");
	if (o->share_as && (!o->share || o->share_as[0] != '/'))
		return say("--share-as needs --share, and an absolute path");
	return true;
}

static int parse(char **argv, struct sidecar_options *out, int *status, bool run)
{
	const struct option_spec *specs = run ? run_specs : init_specs;
	struct options o;
	int option;

	*out = (struct sidecar_options){.run = {.shared_packets = -1},
	        .fence = {.dns_port = SIDECAR_DNS_PORT_DEFAULT,
	                .loopback_all = true,
	                .nflog_group = FENCE_NFLOG_GROUP}};
	*status = run ? CLI_FAILED : CLI_USAGE;
	options_init(&o, run ? "vethguard sidecar run" : "vethguard sidecar init", specs, argv);
	while ((option = options_next(&o)) >= 0) {
		if (strcmp(specs[option].name, "help") == 0) {
			(run ? help_run : help_init)();
			*status = 0;
			return -1;
		}
		if (!(run ? take_run : take_fence)(out, specs[option].name, o.value))
			return -1;
	}
	if (option == OPTIONS_WRONG)
		return -1;
	if (*o.argv) {
		say("it takes options only");
		return -1;
	}
	out->run.shared_dns_port = out->fence.dns_port;
	out->run.shared_udp_count = out->fence.udp_count;
	memcpy(out->run.shared_udp_ports, out->fence.udp_ports, sizeof(out->run.shared_udp_ports));
	return is_complete(out, run) && read_config(out) ? 0 : -1;
}

int sidecar_init_options(char **argv, struct sidecar_options *out, int *status)
{
	return parse(argv, out, status, false);
}

int sidecar_run_options(char **argv, struct sidecar_options *out, int *status)
{
	return parse(argv, out, status, true);
}
