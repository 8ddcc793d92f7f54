/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard attach`: guards a sandbox that another program made. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/attach/options.h"
#include "cli/commands.h"
#include "cli/attach/commands.h"
#include "vethguard/policy/config.h"

/* Returns true only if the member was added with all its words. Text that is not UTF-8 cannot be in
 * JSON, and a request must not be sent without it. */
static bool add_pairs(json_t *body, const char *member, const struct attach_words *words)
{
	json_t *object = json_object();

	for (size_t i = 0; object && i < words->count; i++) {
		const char *equals = strchr(words->items[i], '=');

		if (json_object_setn_new(object, words->items[i],
		            (size_t)(equals - words->items[i]), json_string(equals + 1)) != 0) {
			json_decref(object);
			return false;
		}
	}
	return json_object_set_new(body, member, object) == 0;
}

static bool add_addresses(json_t *body, const struct attach_words *words)
{
	json_t *array = json_array();

	for (size_t i = 0; i < words->count; i++)
		if (json_array_append_new(array, json_string(words->items[i])) != 0) {
			json_decref(array);
			return false;
		}
	return json_object_set_new(body, "addresses", array) == 0;
}

static int add_container(json_t *body, const struct attach_options *o)
{
	struct control_container c;
	int rc = control_container_find(o->engine, o->container, &c);

	if (rc)
		return rc;
	if (!o->name)
		json_object_set_new(body, "name", json_string(c.name));
	json_object_set_new(body, "pid", json_integer(c.pid));
	if (c.start_time)
		json_object_set_new(body, "start_time", json_integer((json_int_t)c.start_time));
	return json_object_set_new(body, "container",
	               json_pack("{s:s, s:s, s:s}", "engine", c.engine, "id", c.id, "name",
	                       c.name)) == 0
	               ? 0
	               : CLI_USAGE;
}

static bool set_text(json_t *body, const char *member, const char *text)
{
	return !text || json_object_set_new(body, member, json_string(text)) == 0;
}

/* The absolute path of a namespace. /proc/PID/ns/net is a link that leads to no path, so it is
 * kept, and only its directory is made absolute. */
static bool resolve_netns(const char *path, char out[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	char directory[PATH_MAX], real[PATH_MAX];
	size_t n = slash ? (size_t)(slash - path) : 0;
	struct stat st;

	if (realpath(path, out))
		return true;
	if (errno != ENOENT || n == 0 || n >= sizeof(directory) || stat(path, &st) != 0)
		return false;
	memcpy(directory, path, n);
	directory[n] = '\0';
	return realpath(directory, real) && snprintf(out, PATH_MAX, "%s%s", real, slash) < PATH_MAX;
}

int attach_add_netns(json_t *body, const char *path)
{
	char netns[PATH_MAX];

	if (path && !resolve_netns(path, netns)) {
		fprintf(stderr,
		        "vethguard: error: --netns %s: %s (a name of 'ip netns' is "
		        "/run/netns/NAME)\n",
		        path, strerror(errno));
		return CLI_USAGE;
	}
	return !path || set_text(body, "netns", netns) ? 0 : CLI_USAGE;
}

bool attach_policy_path(const char *policy, char *out)
{
	struct slice name, file;

	if (!config_bundle_split(slice_from_string(policy), &name, &file))
		return realpath(policy, out);
	errno = ENAMETOOLONG;
	return snprintf(out, PATH_MAX, "%s", policy) < PATH_MAX;
}

int attach_add_identity(json_t *body, const struct attach_options *o)
{
	char policy[PATH_MAX];

	if (!attach_policy_path(o->policy, policy)) {
		fprintf(stderr, "vethguard: error: --policy %s: %s\n", o->policy, strerror(errno));
		return CLI_USAGE;
	}
	if (!set_text(body, "policy", policy) || !set_text(body, "name", o->name) ||
	        !add_pairs(body, "labels", &o->labels) || !add_pairs(body, "vars", &o->vars)) {
		fputs("vethguard: error: names, paths, labels and variables have to be UTF-8\n",
		        stderr);
		return CLI_USAGE;
	}
	if (o->ttl_s)
		json_object_set_new(body, "ttl_s", json_integer((json_int_t)o->ttl_s));
	if (o->observe)
		json_object_set_new(body, "observe", json_true());
	return 0;
}

/* Returns 0, or an exit status after a message. */
static int build(json_t *body, const struct attach_options *o)
{
	int rc = attach_add_identity(body, o);

	if (!rc)
		rc = attach_add_netns(body, o->netns);
	if (rc)
		return rc;
	if (!set_text(body, "interface", o->interface) ||
	        (o->addresses.count && !add_addresses(body, &o->addresses))) {
		fputs("vethguard: error: an interface's name has to be UTF-8\n", stderr);
		return CLI_USAGE;
	}
	if (o->pid)
		json_object_set_new(body, "pid", json_integer(o->pid));
	if (o->container)
		rc = add_container(body, o);
	if (o->listen && !attach_add_listen(body, o))
		return CLI_USAGE;
	if (o->files)
		json_object_set_new(body, "files", json_true());
	return rc;
}

void control_print_attached(const json_t *s)
{
	const json_t *addresses = json_object_get(s, "addresses");
	const char *name = control_text(s, "name");
	const json_t *files = json_object_get(s, "files");

	const char *expires = control_text(s, "expires");
	const char *listen = control_text(json_object_get(s, "attachment"), "listen");

	printf("%s: %s, policy %s%s%s\n", name, control_text(s, "state"),
	        control_text(json_object_get(s, "policy"), "name"), expires[0] ? ", until " : "",
	        expires);
	if (*listen)
		printf("  HTTP proxy and SOCKS5  %s\n", listen);
	else
		printf("  name server and proxy  %s %s port %lld\n",
		        control_text(addresses, "gate4"), control_text(addresses, "gate6"),
		        (long long)json_integer_value(json_object_get(s, "proxy_port")));
	control_print_lines(stdout, "  written inside         ", files);
	printf("What to set inside%s: vethguard env %s\n",
	        json_array_size(files) > 0 ? "" : ", and the CA to install there", name);
}

int cli_attach(int argc, char **argv)
{
	struct attach_options o;
	struct control_answer answer;
	json_t *body;
	int rc = attach_options_read(argv + 1, &o);

	(void)argc;
	if (rc >= 0)
		return rc;
	body = json_object();
	if (!body)
		return CLI_USAGE;
	rc = build(body, &o);
	if (rc == 0)
		rc = control_call(o.line.socket, "POST", "/sandboxes", body, &answer);
	json_decref(body);
	if (rc)
		return rc;
	control_print_lines(
	        stderr, "vethguard: warning: ", json_object_get(answer.json, "warnings"));
	if (o.line.json)
		control_print_json(answer.json);
	else
		control_print_attached(answer.json);
	control_answer_free(&answer);
	return 0;
}
