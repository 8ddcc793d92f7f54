/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network configuration. A table has every member that may be there: those of vethguard-cni,
 * those that runtimes add, and those of other plugins that would have no effect and are refused if
 * they have a value (code 2).
 */
#include <stdlib.h>
#include <string.h>

#include "cni/request.h"

#define SHOWN_MAX 96
#define BAD_CONFIG "the network configuration is invalid"

static bool wrong(struct cni_fault *fault, const char *member, const char *why)
{
	return cni_fail(fault, CNI_INVALID_CONFIG, BAD_CONFIG, "%s: %s", member, why);
}

enum use {
	TEXT,
	LIST,
	OBJECT,
	ANY,   /* for runtimes */
	UNUSED /* of other plugins: only without a value */
};

static const struct member {
	const char *name;
	enum use use;
} members[] = {{"cniVersion", TEXT}, {"name", TEXT}, {"type", TEXT}, {"policy", TEXT},
        {"policyDirectory", TEXT}, {"socket", TEXT}, {"labels", OBJECT}, {"podMayChoose", LIST},
        {"capabilities", OBJECT}, {"runtimeConfig", OBJECT}, {"prevResult", OBJECT}, {"args", ANY},
        {"disableCheck", ANY}, {"disableGC", ANY}, {"loadOnlyInlinedPlugins", ANY},
        {"ipam", UNUSED}, {"dns", UNUSED}, {"ipMasq", UNUSED}};

static bool has_no_value(const json_t *value)
{
	return json_is_null(value) || json_is_false(value) ||
	       (json_is_object(value) && json_object_size(value) == 0);
}

static bool has_use(const json_t *value, enum use use)
{
	switch (use) {
	case TEXT:
		return json_is_string(value);
	case LIST:
		return json_is_array(value);
	case OBJECT:
		return json_is_object(value);
	default:
		return true;
	}
}

/* The specification wants key and value in the message. */
static bool unsupported(
        struct cni_fault *fault, const char *name, const json_t *value, const char *why)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	char key[SHOWN_MAX], shown[SHOWN_MAX];

	slice_escape(slice_from_string(name), key, sizeof(key));
	slice_escape(slice_from_string(text), shown, sizeof(shown));
	free(text);
	return cni_fail(fault, CNI_UNSUPPORTED_FIELD,
	        "the network configuration has an unsupported member", "\"%s\": %s: %s", key, shown,
	        why);
}

static bool check_member(const char *name, const json_t *value, struct cni_fault *fault)
{
	static const char *const types[] = {[TEXT] = "it has to be a string",
	        [LIST] = "it has to be a list",
	        [OBJECT] = "it has to be an object"};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		if (strcmp(name, members[i].name) != 0)
			continue;
		if (members[i].use == UNUSED && !has_no_value(value))
			return unsupported(fault, name, value,
			        "the guard gives addresses and answers names itself; remove the "
			        "member");
		return has_use(value, members[i].use) || wrong(fault, name, types[members[i].use]);
	}
	if (strncmp(name, "cni.dev/", 8) == 0)
		return true;
	return unsupported(fault, name, value,
	        "vethguard-cni(8) has no such member; is it mistyped, or another plugin's?");
}

/* Another capability (portMappings, bandwidth, ips) would be asked for and have no effect. */
static bool check_capabilities(const struct cni_request *request, struct cni_fault *fault)
{
	const json_t *capabilities = json_object_get(request->config, "capabilities");
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)capabilities, name, value)
	{
		if (strcmp(name, CNI_ANNOTATIONS) != 0 && !json_is_false(value))
			return unsupported(
			        fault, name, value, "the only capability is " CNI_ANNOTATIONS);
	}
	return true;
}

static bool check_members(const struct cni_request *request, struct cni_fault *fault)
{
	const char *name;
	json_t *value;

	json_object_foreach(request->config, name, value)
	{
		if (!check_member(name, value, fault))
			return false;
	}
	return true;
}

/* A text, or otherwise if the member is not there. NULL: another type, or too long. */
static const char *text_of(
        const struct cni_request *request, const char *name, const char *otherwise)
{
	const json_t *value = json_object_get(request->config, name);
	const char *text = value ? json_string_value(value) : otherwise;

	return text && strlen(text) <= CNI_PATH_MAX ? text : NULL;
}

static bool read_places(struct cni_request *request, struct cni_fault *fault)
{
	const char *network = text_of(request, "name", NULL);
	const char *socket = text_of(request, "socket", CONTROL_SOCKET_DEFAULT);
	const char *directory = text_of(request, "policyDirectory", POLICY_DIRECTORY_DEFAULT);

	if (!network || !cni_is_name(network, CNI_NAME_MAX))
		return wrong(fault, "name",
		        "the network needs a name of up to 255 letters, digits, '.', '_' and '-', "
		        "beginning with a letter or digit");
	if (!socket || socket[0] != '/')
		return wrong(
		        fault, "socket", "it has to be the absolute path of the daemon's socket");
	if (!directory || directory[0] != '/')
		return wrong(fault, "policyDirectory", "it has to be an absolute path");
	request->network = network;
	request->socket = socket;
	request->policy_directory = directory;
	return true;
}

static bool read_labels(struct cni_request *request, struct cni_fault *fault)
{
	const char *key;
	json_t *value;

	request->labels = json_object_get(request->config, "labels");
	if (json_object_size(request->labels) > CNI_LABELS_MAX)
		return wrong(fault, "labels", "there are more than 24");
	json_object_foreach((json_t *)(uintptr_t)request->labels, key, value)
	{
		if (strncmp(key, "cni.", 4) == 0 || strncmp(key, "pod.", 4) == 0)
			return wrong(
			        fault, "labels", "keys with cni. and pod. are vethguard-cni's own");
		if (!json_is_string(value))
			return wrong(fault, "labels", "a label's value has to be a string");
	}
	return true;
}

static bool may_choose(const json_t *choices, const char *name)
{
	const json_t *choice;
	size_t i;

	json_array_foreach(choices, i, choice)
	{
		if (strcmp(json_string_value(choice), name) == 0)
			return true;
	}
	return false;
}

static bool check_choices(const json_t *choices, struct cni_fault *fault)
{
	const json_t *choice;
	size_t i;

	if (json_array_size(choices) > CNI_CHOICES_MAX)
		return wrong(fault, "podMayChoose", "there are more than 64 names");
	json_array_foreach(choices, i, choice)
	{
		if (!json_is_string(choice) || !policy_name_is_valid(json_string_value(choice)))
			return wrong(
			        fault, "podMayChoose", "it has to be a list of policies' names");
	}
	return true;
}

/* Reads the pod's annotation, or NULL. Returns false if it is not a text. */
static bool read_annotation(
        const struct cni_request *request, const char **out, struct cni_fault *fault)
{
	const json_t *all =
	        json_object_get(json_object_get(request->config, "runtimeConfig"), CNI_ANNOTATIONS);
	const json_t *value = json_object_get(all, CNI_ANNOTATION_POLICY);

	*out = json_string_value(value);
	if ((all && !json_is_object(all) && !json_is_null(all)) || (value && !*out))
		return wrong(fault, "runtimeConfig", "the pod's annotations have to be strings");
	return true;
}

static bool read_policy(struct cni_request *request, struct cni_fault *fault)
{
	const json_t *choices = json_object_get(request->config, "podMayChoose");
	const char *asked = NULL;
	char shown[SHOWN_MAX];

	request->policy = text_of(request, "policy", "");
	if (!request->policy || (*request->policy && !policy_name_is_valid(request->policy)))
		return wrong(fault, "policy",
		        "it has to be a policy's name, and no path: \"agent\" is agent.yaml in "
		        "policyDirectory");
	if (!check_choices(choices, fault) || !read_annotation(request, &asked, fault))
		return false;
	if (!*request->policy && json_array_size(choices) == 0)
		return wrong(fault, "policy",
		        "no policy is named, and pods may not choose one (podMayChoose)");
	if (request->command != CNI_ADD)
		return true;
	if (asked && !may_choose(choices, asked))
		return cni_fail(fault, CNI_POLICY_REFUSED, "the pod may not choose this policy",
		        "annotation " CNI_ANNOTATION_POLICY
		        " is \"%s\", which podMayChoose of network %s "
		        "does not name: add it there, or remove the annotation",
		        slice_escape(slice_from_string(asked), shown, sizeof(shown)),
		        request->network);
	if (asked)
		request->policy = asked;
	if (!*request->policy)
		return cni_fail(fault, CNI_POLICY_REFUSED, "the pod has to choose a policy",
		        "network %s has no policy of its own: set the pod's "
		        "annotation " CNI_ANNOTATION_POLICY
		        " (and capabilities of the network configuration to {\"" CNI_ANNOTATIONS
		        "\": true})",
		        request->network);
	return true;
}

static bool is_attachment(const json_t *attachment)
{
	return json_string_value(json_object_get(attachment, "containerID")) &&
	       json_string_value(json_object_get(attachment, "ifname"));
}

/* Reads the list of valid attachments. Without it, no sandbox may be removed. Early versions of
 * libcni used only the second name.
 */
static bool read_attachments(struct cni_request *request, struct cni_fault *fault)
{
	const json_t *list = json_object_get(request->config, "cni.dev/valid-attachments");
	const json_t *attachment;
	size_t i;

	list = list ? list : json_object_get(request->config, "cni.dev/attachments");
	if (!json_is_array(list))
		return wrong(fault, "cni.dev/valid-attachments",
		        "the list of containers to be kept is missing");
	if (json_array_size(list) > CNI_ATTACHMENTS_MAX)
		return wrong(fault, "cni.dev/valid-attachments", "there are more than 8192");
	json_array_foreach(list, i, attachment)
	{
		if (!is_attachment(attachment))
			return wrong(fault, "cni.dev/valid-attachments",
			        "each needs the strings containerID and ifname");
	}
	request->attachments = list;
	return true;
}

bool cni_config_read(struct cni_request *request, struct cni_fault *fault)
{
	request->previous = json_object_get(request->config, "prevResult");
	if (!read_places(request, fault))
		return false;
	switch (request->command) {
	case CNI_DEL:
		return true;
	case CNI_GC:
		return read_attachments(request, fault);
	case CNI_CHECK:
		if (!json_is_object(request->previous))
			return wrong(fault, "prevResult", "CHECK needs what ADD has answered");
		break;
	default:
		break;
	}
	return check_members(request, fault) && check_capabilities(request, fault) &&
	       read_labels(request, fault) && read_policy(request, fault);
}
