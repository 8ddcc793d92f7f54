/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `vethguard run` and its --help. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/variable_option.h"
#include "cli/run/options.h"
#include "vethguard/wire/message.h"
#include "vethguard/base/options.h"
#include "vethguard/base/slice.h"
#include "vethguard/policy/load.h"
#include "vethguard/policy/policy.h"

enum {
	POLICY,
	VAR,
	CONFIG,
	NAME,
	USER,
	AUDIT,
	OBSERVE,
	ENV,
	CLEAN_ENV,
	KEEP_ENV,
	NO_ENV,
	PROXY_ENV,
	DEVICE,
	VERBOSE,
	HELP
};

static const struct option_spec specs[] = {
        [POLICY] = {"policy", 'p', "FILE", "the policy to enforce (required)"},
        [VAR] = {"var", 0, "NAME=VALUE", "the value of ${NAME} in the policy; may be repeated"},
        [CONFIG] = {"config", 'c', "FILE", "settings: resolvers, static hosts, CA files, limits"},
        [NAME] = {"name", 'n', "NAME", "the sandbox's name in the audit log"},
        [USER] = {"user", 'u', "USER",
                "run the command as this user (name or id, USER:GROUP);\n"
                "default: who started vethguard, also through sudo"},
        [AUDIT] = {"audit", 'a', "FILE",
                "append the audit log here; default: what the\n"
                "configuration says, else no file"},
        [OBSERVE] = {"observe", 0, NULL,
                "refuse only what no policy can permit, and log\nwhat the policy would have "
                "refused"},
        [ENV] = {"env", 'e', "NAME[=VALUE]", "set or pass on one variable; may be repeated"},
        [CLEAN_ENV] = {"clean-env", 0, NULL,
                "of the environment keep only what programs need:\n"
                "PATH, HOME, USER, LANG, TERM, XDG_*, EDITOR, ..."},
        [KEEP_ENV] = {"keep-env", 0, "NAME",
                "with --clean-env keep this variable too, if it is set;\n"
                "may be repeated"},
        [NO_ENV] = {"no-env", 0, NULL, "the older name of --clean-env"},
        [PROXY_ENV] = {"proxy-env", 0, NULL,
                "set HTTP_PROXY, HTTPS_PROXY and their lower-case forms"},
        [DEVICE] = {"device", 0, "PATH",
                "let the command use a device, or a folder of them\n"
                "(/dev/dri, /dev/kvm); may be repeated"},
        [VERBOSE] = {"verbose", 'v', NULL, "log what is done; twice: in detail"},
        [HELP] = {"help", 'h', NULL, "this text"},
        {NULL, 0, NULL, NULL},
};

static void help(void)
{
	fputs("Usage: vethguard run --policy FILE [OPTIONS] [--] COMMAND [ARGUMENT...]\n\n"
	      "Runs COMMAND in a network of its own whose only way out is a proxy that "
	      "checks\nevery request against the policy. Works for root and, where the kernel "
	      "permits user\n"
	      "namespaces, for everyone ('vethguard doctor' tells).\n\nOptions:\n",
	        stdout);
	options_print(specs, stdout);
	fputs("\nExamples:\n"
	      "  vethguard run --policy coding-agent.yaml -- pip download requests\n"
	      "  vethguard run --policy agent.yaml --audit agent.jsonl -- bash\n"
	      "  vethguard run --policy agent.yaml --config site.yaml --name build-7 -- make\n"
	      "  vethguard run --policy agent.yaml --var repo=acme/site -- ./task\n"
	      "  vethguard run --policy agent.yaml --observe -- npm install\n"
	      "  vethguard run --policy agent.yaml --clean-env --env CI=1 --keep-env GOPATH -- "
	      "./task\n"
	      "  sudo vethguard run --policy agent.yaml --user nobody -- curl https://pypi.org\n"
	      "  vethguard run --policy agent.yaml --proxy-env -v -- ./client\n"
	      "  vethguard run --policy agent.yaml --device /dev/dri -- ./train\n\n"
	      "Exit status: COMMAND's own, 128+N where signal N ended it; 125 vethguard itself\n"
	      "failed; 126 COMMAND cannot be executed; 127 COMMAND was not found.\n",
	        stdout);
}

static bool env_is_well_formed(const char *text)
{
	size_t n = strcspn(text, "=");

	return n > 0 &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
	               n &&
	       (text[0] < '0' || text[0] > '9');
}

static bool add_env(struct run_options *out, const char *value)
{
	char escaped[128];

	if (!env_is_well_formed(value)) {
		slice_escape(slice_of(value, strcspn(value, "=")), escaped, sizeof(escaped));
		fprintf(stderr,
		        "vethguard: error: --env %s: not a variable's name; write NAME or "
		        "NAME=VALUE\n",
		        escaped);
		return false;
	}
	if (out->env_count == RUN_ENV_MAX) {
		fprintf(stderr, "vethguard: error: more than %d --env options\n", RUN_ENV_MAX);
		return false;
	}
	out->env[out->env_count++] = value;
	return true;
}

static bool add_kept(struct run_options *out, const char *name)
{
	char escaped[128];

	if (!env_is_well_formed(name) || strchr(name, '=')) {
		fprintf(stderr,
		        "vethguard: error: --keep-env %s: not a variable's name; --env sets one to "
		        "a value\n",
		        slice_escape(slice_of(name, strcspn(name, "=")), escaped, sizeof(escaped)));
		return false;
	}
	if (out->keep_count == RUN_ENV_MAX) {
		fprintf(stderr, "vethguard: error: more than %d --keep-env options\n", RUN_ENV_MAX);
		return false;
	}
	out->keep[out->keep_count++] = name;
	return true;
}

/* Device files that every sandbox has of its own cannot be the machine's. */
static bool device_is_well_formed(const char *path)
{
	static const char *const own[] = {"/dev/pts", "/dev/ptmx", "/dev/shm", "/dev/fd",
	        "/dev/stdin", "/dev/stdout", "/dev/stderr"};
	size_t n;

	if (strncmp(path, "/dev/", 5) != 0 || path[5] == '\0' || strlen(path) >= PATH_MAX)
		return false;
	for (const char *at = path; at; at = strchr(at + 1, '/')) {
		n = strcspn(at + 1, "/");
		if (n == 0 || (n <= 2 && strspn(at + 1, ".") >= n))
			return false;
	}
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		n = strlen(own[i]);
		if (strncmp(path, own[i], n) == 0 && (path[n] == '\0' || path[n] == '/'))
			return false;
	}
	return true;
}

static bool add_device(struct run_options *out, const char *path)
{
	char shown[128];

	if (!device_is_well_formed(path)) {
		fprintf(stderr,
		        "vethguard: error: --device %s: not a device that can be let in; write a "
		        "path in /dev, for example /dev/kvm\n",
		        slice_escape(slice_from_string(path), shown, sizeof(shown)));
		return false;
	}
	if (out->device_count == RUN_DEVICES_MAX) {
		fprintf(stderr, "vethguard: error: more than %d --device options\n",
		        RUN_DEVICES_MAX);
		return false;
	}
	out->devices[out->device_count++] = path;
	return true;
}

/* Only the last policy would be in force, which a user who names two does not expect. */
static bool take_policy(struct run_options *out, const char *value)
{
	if (out->policy)
		fputs("vethguard: error: --policy is given twice; one policy can include others "
		      "(include: [other.yaml])\n",
		        stderr);
	else
		out->policy = value;
	return out->policy == value;
}

static bool take(struct run_options *out, int option, const char *value)
{
	switch (option) {
	case POLICY:
		return take_policy(out, value);
	case VAR:
		return variable_take(value, out->variables, &out->variable_count);
	case CONFIG:
		out->config = value;
		return true;
	case NAME:
		out->name = value;
		return true;
	case USER:
		out->user = value;
		return true;
	case AUDIT:
		out->audit = value;
		return true;
	case OBSERVE:
		out->observe = true;
		return true;
	case ENV:
		return add_env(out, value);
	case CLEAN_ENV:
	case NO_ENV:
		out->clean_env = true;
		return true;
	case KEEP_ENV:
		return add_kept(out, value);
	case PROXY_ENV:
		out->proxy_env = true;
		return true;
	case DEVICE:
		return add_device(out, value);
	case VERBOSE:
		out->verbose++;
		return true;
	default:
		return false;
	}
}

static bool is_policy_file(const char *word)
{
	struct slice s = slice_from_string(word ? word : "");

	return slice_ends_with(s, SLICE(".yaml")) || slice_ends_with(s, SLICE(".yml"));
}

/* Returns the path of an existing example: of an installation, beside its presets, or of the tree
 * that this program was built in. If there is none, returns a plain name. */
static const char *example_policy(char out[PATH_MAX])
{
	static const char name[] = "coding-agent.yaml";
	const char *presets = policy_default_preset_dir(), *slash = strrchr(presets, '/');
	int n = slash ? (int)(slash - presets) : 0;

	snprintf(out, PATH_MAX, "%.*s/examples/%s", n, presets, name);
	if (access(out, R_OK) == 0)
		return out;
	snprintf(out, PATH_MAX, "%.*s/%s", n, presets, name);
	return access(out, R_OK) == 0 ? out : name;
}

static void ask_for_policy(const char *command)
{
	char shown[128], path[PATH_MAX];

	if (is_policy_file(command))
		fprintf(stderr,
		        "vethguard: error: which policy? %s stands in place of the command; did "
		        "you mean --policy %s?\n",
		        slice_escape(slice_from_string(command), shown, sizeof(shown)), shown);
	else
		fprintf(stderr,
		        "vethguard: error: which policy? Name one with --policy, for example:\n"
		        "  vethguard run --policy %s -- COMMAND\n"
		        "'vethguard policy new' writes one. The smallest, which permits nothing, "
		        "is "
		        "the single line 'vethguard: 1'.\n",
		        example_policy(path));
}

static bool complete(const struct run_options *o)
{
	char shown[128];

	if (o->name && !message_name_is_plain(slice_from_string(o->name))) {
		fprintf(stderr, "vethguard: error: --name %s: " MESSAGE_NAME_RULE "\n",
		        slice_escape(slice_from_string(o->name), shown, sizeof(shown)),
		        MESSAGE_NAME_MAX);
		return false;
	}
	if (!o->policy || o->policy[0] == '\0') {
		ask_for_policy(o->command[0]);
		return false;
	}
	if (!o->command[0] || o->command[0][0] == '\0') {
		fprintf(stderr,
		        "vethguard: error: which command? Write it behind the options, for "
		        "example:\n  vethguard run --policy %s -- curl https://pypi.org\n",
		        slice_escape(slice_from_string(o->policy), shown, sizeof(shown)));
		return false;
	}
	return true;
}

int run_options_parse(char **argv, struct run_options *out, int *status)
{
	struct options o;
	int option;

	*out = (struct run_options){0};
	*status = CLI_FAILED;
	options_init(&o, "vethguard run", specs, argv);
	while ((option = options_next(&o)) >= 0) {
		if (option == HELP) {
			help();
			*status = 0;
			return -1;
		}
		if (!take(out, option, o.value))
			return -1;
	}
	if (option == OPTIONS_WRONG)
		return -1;
	out->command = o.argv;
	return complete(out) ? 0 : -1;
}
