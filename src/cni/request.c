/* SPDX-License-Identifier: Apache-2.0 */
/* The environment, and the frame of the network configuration; see cni/request.h. */
#include <ctype.h>
#include <net/if.h>
#include <string.h>

#include "cni/request.h"

#define SHOWN_MAX 96 /* bytes of a value in a message */

const char *const cni_versions[] = {"0.4.0", "1.0.0", CNI_VERSION_NEWEST, NULL};

static const char *const command_names[] = {[CNI_ADD] = "ADD",
        [CNI_DEL] = "DEL",
        [CNI_CHECK] = "CHECK",
        [CNI_STATUS] = "STATUS",
        [CNI_GC] = "GC",
        [CNI_VERSION] = "VERSION"};
_Static_assert(sizeof(command_names) / sizeof(command_names[0]) == CNI_COMMAND_COUNT,
        "a name per command");

static bool wrong_variable(
        struct cni_fault *fault, const char *name, const char *value, const char *rule)
{
	char shown[SHOWN_MAX];

	if (!value || !*value)
		return cni_fail(fault, CNI_INVALID_ENVIRONMENT, "a variable is missing",
		        "%s is not set: the container runtime has to set it", name);
	return cni_fail(fault, CNI_INVALID_ENVIRONMENT, "a variable is invalid", "%s=\"%s\": %s",
	        name, slice_escape(slice_from_string(value), shown, sizeof(shown)), rule);
}

static bool read_command(struct cni_request *request, const char *name, struct cni_fault *fault)
{
	for (int i = 0; name && i < CNI_COMMAND_COUNT; i++) {
		if (strcmp(name, command_names[i]) != 0)
			continue;
		request->command = (enum cni_command)i;
		return true;
	}
	return wrong_variable(fault, "CNI_COMMAND", name,
	        "it is ADD, DEL, CHECK, STATUS, GC or VERSION (vethguard-cni is started by "
	        "container "
	        "runtimes: see vethguard-cni(8))");
}

/* As dev_valid_name() of the kernel, and without the ':' of aliases. */
static bool is_interface(const char *name)
{
	if (!*name || strlen(name) >= IFNAMSIZ || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	for (; *name; name++)
		if (*name == '/' || *name == ':' || !isgraph((unsigned char)*name))
			return false;
	return true;
}

static bool is_path(const char *text)
{
	return text[0] == '/' && strlen(text) <= CNI_PATH_MAX;
}

static bool read_container(
        struct cni_request *request, const struct cni_environment *e, struct cni_fault *fault)
{
	const bool needs_netns = request->command != CNI_DEL;

	request->container = e->container ? e->container : "";
	request->interface = e->interface ? e->interface : "";
	request->netns = e->netns ? e->netns : "";
	if (!cni_is_name(request->container, CNI_NAME_MAX))
		return wrong_variable(fault, "CNI_CONTAINERID", e->container,
		        "an id is up to 255 letters, digits, '.', '_' and '-', beginning with a "
		        "letter or digit");
	if (!is_interface(request->interface))
		return wrong_variable(fault, "CNI_IFNAME", e->interface,
		        "an interface's name has up to 15 bytes, without space, '/' and ':'");
	if ((needs_netns || *request->netns) && !is_path(request->netns))
		return wrong_variable(fault, "CNI_NETNS", e->netns,
		        "it is the absolute path of a network namespace, up to 1023 bytes");
	if (request->command == CNI_DEL) { /* the pod's labels are not needed: DEL must not fail */
		struct cni_fault ignored;

		if (!cni_arguments_read(&request->pod, e->arguments, &ignored))
			memset(&request->pod, 0, sizeof(request->pod));
		return true;
	}
	return cni_arguments_read(&request->pod, e->arguments, fault);
}

static bool load(struct cni_request *request, struct slice input, struct cni_fault *fault)
{
	json_error_t error;

	if (input.n > CNI_STDIN_MAX)
		return cni_fail(fault, CNI_DECODING_FAILURE,
		        "the network configuration is too long",
		        "standard input has more than %u bytes", CNI_STDIN_MAX);
	request->config =
	        json_loadb(input.p ? input.p : "", input.n, JSON_REJECT_DUPLICATES, &error);
	if (!request->config)
		return cni_fail(fault, CNI_DECODING_FAILURE,
		        "the network configuration is not JSON", "standard input, line %d: %s",
		        error.line, error.text);
	if (!json_is_object(request->config))
		return cni_fail(fault, CNI_DECODING_FAILURE,
		        "the network configuration is not an object",
		        "standard input has JSON of another type");
	return true;
}

static bool read_version(struct cni_request *request, struct cni_fault *fault)
{
	const char *asked = json_string_value(json_object_get(request->config, "cniVersion"));
	char shown[SHOWN_MAX];

	for (size_t i = 0; asked && cni_versions[i]; i++) {
		if (strcmp(asked, cni_versions[i]) != 0)
			continue;
		request->version = cni_versions[i];
		return true;
	}
	if (request->command == CNI_VERSION) /* the answer says what there is */
		return true;
	return cni_fail(fault, CNI_INCOMPATIBLE_VERSION, "the CNI version is not supported",
	        "cniVersion is %s%s%s; use 0.4.0, 1.0.0 or 1.1.0",
	        asked ? "\"" : "missing, or not a string",
	        asked ? slice_escape(slice_from_string(asked), shown, sizeof(shown)) : "",
	        asked ? "\"" : "");
}

bool cni_request_read(struct cni_request *request, const struct cni_environment *environment,
        struct slice input, struct cni_fault *fault)
{
	*request = (struct cni_request){.version = CNI_VERSION_NEWEST,
	        .container = "",
	        .netns = "",
	        .interface = "",
	        .network = "",
	        .socket = "",
	        .policy_directory = "",
	        .policy = ""};
	if (!read_command(request, environment->command, fault))
		return false;
	if (request->command == CNI_VERSION && input.n == 0)
		return true;
	if (!load(request, input, fault) || !read_version(request, fault))
		return false;
	switch (request->command) {
	case CNI_VERSION:
		return true;
	case CNI_ADD:
	case CNI_DEL:
	case CNI_CHECK:
		return read_container(request, environment, fault) &&
		       cni_config_read(request, fault);
	default:
		return cni_config_read(request, fault);
	}
}

void cni_request_free(struct cni_request *request)
{
	json_decref(request->config);
	request->config = NULL;
}
