/* SPDX-License-Identifier: Apache-2.0 */
/* The engine is only displayed: it is told by the annotations that each puts there, or by where its
 * runtime's state is. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/process.h"
#include "runtime/attach.h"

#define LONG_ID 64   /* hex digits of the ids that Docker, Podman and containerd make up */
#define SHORT_ID 12  /* as these engines show them */
#define SHOWN_ID 255 /* bytes of an id that the daemon keeps */

enum attach_choice attach_choose(const struct settings *s, struct request *r, struct fault *fault)
{
	char path[PATH_MAX], why[POLICY_NAME_FAULT_MAX];

	if (!r->policy && s->without_policy == WITHOUT_PASS) {
		if (!r->name && !r->ttl_s && !json_object_size(r->labels) &&
		        !json_object_size(r->vars))
			return ATTACH_LEAVE;
		fault_set(fault, "the container names no policy (VETHGUARD_POLICY=NAME), but sets "
		                 "other options of its guard");
		return ATTACH_NO;
	}
	if (!r->policy && s->without_policy == WITHOUT_NAME)
		r->policy = s->policy;
	if (!r->policy) {
		fault_set(fault,
		        "the container names no policy: set VETHGUARD_POLICY=NAME in its "
		        "environment, "
		        "or the annotation org.vethguard.policy; \"without_policy:\" in %s says "
		        "what is done with those that name none",
		        SETTINGS_PATH);
		return ATTACH_NO;
	}
	if (policy_name_resolve(s->policies, r->policy, path, why))
		return ATTACH_GUARD;
	fault_set(fault, "%s", why);
	return ATTACH_NO;
}

const char *attach_engine(const json_t *config, const struct line *line)
{
	static const struct {
		const char *start, *engine;
	} annotations[] = {{"io.kubernetes.cri-o.", "cri-o"}, {"io.kubernetes.cri.", "containerd"},
	        {"io.podman.", "podman"}, {"io.container.manager", "podman"},
	        {"nerdctl/", "nerdctl"}};
	json_t *found = json_object_get(config, "annotations");

	for (void *at = json_object_iter(found); at; at = json_object_iter_next(found, at))
		for (size_t i = 0; i < sizeof(annotations) / sizeof(annotations[0]); i++)
			if (strncmp(json_object_iter_key(at), annotations[i].start,
			            strlen(annotations[i].start)) == 0)
				return annotations[i].engine;
	if (line->root && strstr(line->root, "/moby"))
		return "docker";
	if (line->log && strstr(line->log, "containerd"))
		return "containerd";
	return line->log && strstr(line->log, "/oci-log") ? "podman" : "oci";
}

static const char *find_name(const json_t *config)
{
	static const char *const keys[] = {"io.kubernetes.cri.container-name",
	        "io.kubernetes.cri-o.ContainerName", "io.kubernetes.cri.sandbox-name", NULL};
	const json_t *annotations = json_object_get(config, "annotations");
	const char *name = NULL;

	for (size_t i = 0; keys[i] && !name; i++)
		name = json_string_value(json_object_get(annotations, keys[i]));
	if (!name)
		name = json_string_value(json_object_get(config, "hostname"));
	return name && strlen(name) < SHOWN_ID ? name : "";
}

/* The sandbox's name when nobody asked for one: the id as `docker ps` shows it. */
static void make_name(const char *id, char out[GUARD_NAME_MAX + 1])
{
	size_t n = strlen(id);

	snprintf(out, GUARD_NAME_MAX + 1, "%.*s", n == LONG_ID ? SHORT_ID : GUARD_NAME_MAX, id);
	if (!guard_name_is_plain(out))
		out[0] = '\0';
}

json_t *attach_body(const struct settings *s, const struct request *r, const json_t *config,
        const struct line *line, pid_t pid, struct fault *fault)
{
	char path[PATH_MAX], why[POLICY_NAME_FAULT_MAX], name[GUARD_NAME_MAX + 1], id[SHOWN_ID + 1];
	uint64_t start_time;
	json_t *body;

	make_name(line->id, name);
	snprintf(id, sizeof(id), "%s", line->id);
	if (!policy_name_resolve(s->policies, r->policy, path, why) ||
	        process_start_time(pid, &start_time) != 0) {
		fault_set(fault, "the process %d is gone", (int)pid);
		return NULL;
	}
	body = json_pack("{s:s, s:I, s:I, s:O, s:O, s:{s:s, s:s, s:s}}", "policy", path, "pid",
	        (json_int_t)pid, "start_time", (json_int_t)start_time, "labels", r->labels, "vars",
	        r->vars, "container", "engine", attach_engine(config, line), "id", id, "name",
	        find_name(config));
	if (r->name || *name)
		json_object_set_new(body, "name", json_string(r->name ? r->name : name));
	if (r->ttl_s)
		json_object_set_new(body, "ttl_s", json_integer((json_int_t)r->ttl_s));
	if (!body)
		fault_set(fault, "a text about the container is not UTF-8");
	return body;
}

json_t *attach_ask(
        const struct settings *s, const struct request *r, json_t *body, struct fault *fault)
{
	struct fault first = {""};
	json_t *again = json_deep_copy(body), *answer;
	bool taken;

	answer = guard_attach(s, body, &taken, &first);
	if (answer || !taken || r->name || !json_object_get(again, "name")) {
		json_decref(again);
		if (!answer)
			fault_set(fault, "%s", first.text);
		return answer;
	}
	json_object_del(again, "name");
	return guard_attach(s, again, &taken, fault);
}
