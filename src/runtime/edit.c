/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only what the guard needs is changed. A member of a wrong type is refused, not mended: what it
 * means to the real runtime is not known here.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/edit.h"

#define DOCKER_HOOK "libnetwork-setkey" /* dockerd 28 and later do without it */
#define MOUNT_PATH_MAX 4096

static bool no_memory(struct fault *fault)
{
	return fault_set(fault, "no memory");
}

static json_t *find_namespace(const json_t *config, const char *type, struct fault *fault)
{
	const json_t *list = json_object_get(json_object_get(config, "linux"), "namespaces");
	json_t *found = NULL;

	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *item = json_array_get(list, i);
		const char *name = json_string_value(json_object_get(item, "type"));

		if (!name) {
			fault_set(fault, "config.json: a namespace has no type");
			return NULL;
		}
		if (strcmp(name, type) != 0)
			continue;
		if (found) {
			fault_set(fault, "config.json: the namespace \"%s\" appears twice", type);
			return NULL;
		}
		found = item;
	}
	return found;
}

const char *edit_find_netns(const json_t *config, struct fault *fault)
{
	const json_t *network = find_namespace(config, "network", fault), *path;

	if (!network) {
		fault_set(fault,
		        "the container is to have the host's own network, which cannot be guarded: "
		        "start it without --network host");
		return NULL;
	}
	path = json_object_get(network, "path");
	if (path && !json_is_string(path)) {
		fault_set(fault, "config.json: the network namespace's path has to be a string");
		return NULL;
	}
	if (path && *json_string_value(path))
		return json_string_value(path);
	if (find_namespace(config, "user", fault)) {
		fault_set(fault,
		        "a container with a user namespace of its own has to bring its network "
		        "namespace along: attach that to the guard, or start it without user "
		        "namespaces (--userns host)");
		return NULL;
	}
	return fault->text[0] ? NULL : "";
}

bool edit_set_netns(json_t *config, const char *path, struct fault *fault)
{
	json_t *network = find_namespace(config, "network", fault);

	if (!network)
		return fault_set(fault, "config.json has no network namespace");
	return json_object_set_new(network, "path", json_string(path)) == 0 || no_memory(fault);
}

/* Writes the path without doubled slashes and "." parts; false: it has a ".." or is too long. */
static bool clean(const char *path, char out[MOUNT_PATH_MAX])
{
	size_t n = 0;

	while (*path) {
		size_t part;

		path += strspn(path, "/");
		part = strcspn(path, "/");
		if (part == 2 && strncmp(path, "..", 2) == 0)
			return false;
		if (part > 0 && !(part == 1 && *path == '.')) {
			if (n + part + 2 > MOUNT_PATH_MAX)
				return false;
			out[n++] = '/';
			memcpy(out + n, path, part);
			n += part;
		}
		path += part;
	}
	out[n] = '\0'; /* "" is the root itself */
	return true;
}

bool edit_is_covered(const json_t *config, const char *path, bool exact)
{
	const json_t *mounts = json_object_get(config, "mounts");
	char at[MOUNT_PATH_MAX];

	for (size_t i = 0; i < json_array_size(mounts); i++) {
		const char *destination = json_string_value(
		        json_object_get(json_array_get(mounts, i), "destination"));
		size_t n;

		if (!destination || !clean(destination, at) || !at[0])
			continue;
		n = strlen(at);
		if (strncmp(path, at, n) == 0 && (path[n] == '/' || (!exact && !path[n])))
			return true;
	}
	return false;
}

static void remove_mount(json_t *mounts, const char *path)
{
	char at[MOUNT_PATH_MAX];

	for (size_t i = json_array_size(mounts); i-- > 0;) {
		const char *destination = json_string_value(
		        json_object_get(json_array_get(mounts, i), "destination"));

		if (destination && clean(destination, at) && strcmp(at, path) == 0)
			json_array_remove(mounts, i);
	}
}

bool edit_add_mount(json_t *config, const char *path, const char *source, struct fault *fault)
{
	json_t *mounts = json_object_get(config, "mounts"), *mount;

	if (!mounts) {
		mounts = json_array();
		if (json_object_set_new(config, "mounts", mounts) != 0)
			return no_memory(fault);
	}
	if (!json_is_array(mounts))
		return fault_set(fault, "config.json: mounts have to be a list");
	remove_mount(mounts, path);
	mount = json_pack("{s:s, s:s, s:s, s:[s, s, s, s, s, s]}", "destination", path, "type",
	        "bind", "source", source, "options", "rbind", "rprivate", "ro", "nosuid", "nodev",
	        "noexec");
	return json_array_append_new(mounts, mount) == 0 || no_memory(fault);
}

/* The name of a variable "NAME=VALUE" is this one's. */
static bool same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return n == strcspn(b, "=") && strncmp(a, b, n) == 0;
}

static void unset(json_t *list, const char *variable)
{
	for (size_t i = json_array_size(list); i-- > 0;) {
		const char *text = json_string_value(json_array_get(list, i));

		if (text && same_name(text, variable))
			json_array_remove(list, i);
	}
}

bool edit_set_variables(json_t *process, const struct environment *env, struct fault *fault)
{
	static const char *const proxies[] = {
	        "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"};
	json_t *list = json_object_get(process, "env");

	if (!json_is_object(process))
		return fault_set(fault, "config.json has no process");
	if (!list) {
		list = json_array();
		if (json_object_set_new(process, "env", list) != 0)
			return no_memory(fault);
	}
	if (!json_is_array(list))
		return fault_set(fault, "config.json: process.env has to be a list");
	for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++)
		unset(list, proxies[i]);
	for (size_t i = 0; i < env->count; i++) {
		unset(list, env->vars[i]);
		if (json_array_append_new(list, json_string(env->vars[i])) != 0)
			return no_memory(fault);
	}
	return !env->failed || no_memory(fault);
}

bool edit_has_net_admin(const json_t *config)
{
	json_t *sets = json_object_get(json_object_get(config, "process"), "capabilities");

	if (!json_is_object(sets))
		return true; /* it says nothing about them */
	for (void *at = json_object_iter(sets); at; at = json_object_iter_next(sets, at)) {
		const json_t *set = json_object_iter_value(at);

		for (size_t i = 0; i < json_array_size(set); i++) {
			const char *name = json_string_value(json_array_get(set, i));

			if (!name || strcmp(name, "CAP_NET_ADMIN") == 0)
				return true;
		}
	}
	return false;
}

bool edit_drop_docker_hook(json_t *config)
{
	json_t *hooks = json_object_get(json_object_get(config, "hooks"), "prestart");
	bool found = false;

	for (size_t i = json_array_size(hooks); i-- > 0;) {
		const json_t *arguments = json_object_get(json_array_get(hooks, i), "args");
		const char *first = json_string_value(json_array_get(arguments, 0));

		if (first && strcmp(first, DOCKER_HOOK) == 0)
			found = json_array_remove(hooks, i) == 0;
	}
	return found;
}

bool edit_annotate(json_t *config, const char *key, const char *value, struct fault *fault)
{
	json_t *annotations = json_object_get(config, "annotations");

	if (!annotations) {
		annotations = json_object();
		if (json_object_set_new(config, "annotations", annotations) != 0)
			return no_memory(fault);
	}
	return json_object_set_new(annotations, key, json_string(value)) == 0 || no_memory(fault);
}
