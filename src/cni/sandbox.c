/* SPDX-License-Identifier: Apache-2.0 */
/* Names, labels and calls of the daemon about one sandbox; see cni/sandbox.h. */
#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vethguard/base/hash.h"
#include "cni/sandbox.h"

#define DIGEST_MAX 17      /* '-' and 16 digits */
#define CONTAINER_SHOWN 12 /* of a container's id, as engines show it */

static void digest(const struct cni_request *request, char out[DIGEST_MAX + 1])
{
	static const struct hash_key key = {0x7665746867756172, 0x636e69};
	char text[2 * CNI_NAME_MAX + IFNAMSIZ + 3];
	const int n = snprintf(text, sizeof(text), "%s\n%s\n%s", request->network,
	        request->container, request->interface);

	snprintf(out, DIGEST_MAX + 1, "-%016llx",
	        (unsigned long long)hash_bytes(&key, text, (size_t)n));
}

void cni_sandbox_name(const struct cni_request *request, char out[CNI_SANDBOX_NAME_MAX + 1])
{
	const struct cni_pod *pod = &request->pod;
	char end[DIGEST_MAX + 1], words[CNI_NAMESPACE_MAX + CNI_POD_MAX + 2];

	digest(request, end);
	if (*pod->name)
		snprintf(words, sizeof(words), "%s%s%s", pod->namespace, *pod->namespace ? "." : "",
		        pod->name);
	else
		snprintf(words, sizeof(words), "%.*s", CONTAINER_SHOWN, request->container);
	snprintf(out, CNI_SANDBOX_NAME_MAX + 1, "%.*s%s", CNI_SANDBOX_NAME_MAX - DIGEST_MAX, words,
	        end);
}

static bool put(json_t *labels, const char *key, const char *value)
{
	return !*value || json_object_set_new(labels, key, json_string(value)) == 0;
}

json_t *cni_sandbox_labels(const struct cni_request *request)
{
	json_t *labels =
	        request->labels ? json_copy((json_t *)(uintptr_t)request->labels) : json_object();

	if (labels && put(labels, CNI_LABEL_NETWORK, request->network) &&
	        put(labels, CNI_LABEL_CONTAINER, request->container) &&
	        put(labels, CNI_LABEL_INTERFACE, request->interface) &&
	        put(labels, "pod.namespace", request->pod.namespace) &&
	        put(labels, "pod.name", request->pod.name) &&
	        put(labels, "pod.uid", request->pod.uid))
		return labels;
	json_decref(labels);
	return NULL;
}

static bool is_ours(const struct cni_request *request, const json_t *sandbox)
{
	const json_t *labels = json_object_get(sandbox, "labels");

	return strcmp(control_text(labels, CNI_LABEL_NETWORK), request->network) == 0 &&
	       strcmp(control_text(labels, CNI_LABEL_CONTAINER), request->container) == 0 &&
	       strcmp(control_text(labels, CNI_LABEL_INTERFACE), request->interface) == 0;
}

/* Returns the name in the daemon's list that ends with the digest, or "" (borrowed). */
static const char *name_in(const json_t *list, const char *end)
{
	const json_t *sandbox;
	size_t i;

	json_array_foreach(json_object_get(list, "sandboxes"), i, sandbox)
	{
		const char *name = control_text(sandbox, "name");

		if (slice_ends_with(slice_from_string(name), slice_from_string(end)))
			return name;
	}
	return "";
}

/* Gets the sandbox of this name. *out: NULL if there is none, or if it is another container's. */
static bool get(
        const struct cni_request *request, const char *name, json_t **out, struct cni_fault *fault)
{
	char path[CNI_SANDBOX_NAME_MAX + 16];
	struct control_answer answer;
	int rc;

	*out = NULL;
	snprintf(path, sizeof(path), "/sandboxes/%s", name);
	rc = control_client_call(request->socket, "GET", path, NULL, &answer);
	if (rc || (answer.status != 200 && answer.status != 404)) {
		cni_fail_call(fault, CNI_TRY_AGAIN, CNI_TRY_AGAIN,
		        "vethguardd does not list its sandboxes", &answer, rc, request->socket);
		control_answer_free(&answer);
		return false;
	}
	if (answer.status == 200 && is_ours(request, answer.json))
		*out = json_incref(answer.json);
	control_answer_free(&answer);
	return true;
}

bool cni_sandbox_find(const struct cni_request *request, json_t **out, struct cni_fault *fault)
{
	char name[CNI_SANDBOX_NAME_MAX + 1], end[DIGEST_MAX + 1];
	struct control_answer list;
	const char *other;
	bool said = true;
	int rc;

	cni_sandbox_name(request, name);
	if (!get(request, name, out, fault))
		return false;
	if (*out)
		return true;
	rc = control_client_call(request->socket, "GET", "/sandboxes", NULL, &list);
	if (rc || list.status != 200) {
		said = cni_fail_call(fault, CNI_TRY_AGAIN, CNI_TRY_AGAIN,
		        "vethguardd does not list its sandboxes", &list, rc, request->socket);
	} else {
		digest(request, end);
		other = name_in(list.json, end);
		if (*other && strlen(other) <= CNI_SANDBOX_NAME_MAX)
			said = get(request, other, out, fault);
	}
	control_answer_free(&list);
	return said;
}

const char *cni_sandbox_interface(const json_t *sandbox)
{
	return control_text(json_object_get(sandbox, "attachment"), "interface");
}

/* Returns 0, also if there is no such interface, or -errno. */
static int take_down(const char *interface)
{
	struct ifreq request = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;

	if (fd < 0)
		return -errno;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	if (ioctl(fd, SIOCGIFFLAGS, &request) < 0) {
		rc = -errno;
	} else {
		request.ifr_flags &= (short)~IFF_UP;
		rc = ioctl(fd, SIOCSIFFLAGS, &request) == 0 ? 0 : -errno;
	}
	close(fd);
	return rc == -ENODEV ? 0 : rc;
}

bool cni_sandbox_detach(
        const struct cni_request *request, const json_t *sandbox, struct cni_fault *fault)
{
	const char *interface = cni_sandbox_interface(sandbox),
	           *name = control_text(sandbox, "name");
	char path[CNI_SANDBOX_NAME_MAX + 16];
	struct control_answer answer;
	int rc = *interface ? take_down(interface) : 0;
	bool done;

	if (rc)
		return cni_fail(fault, CNI_IO_FAILURE, "the container's link cannot be taken down",
		        "%s: %s; the guard stays, because without it the link would be open",
		        interface, strerror(-rc));
	snprintf(path, sizeof(path), "/sandboxes/%.*s", CNI_SANDBOX_NAME_MAX, name);
	rc = control_client_call(request->socket, "DELETE", path, NULL, &answer);
	done = (!rc && (control_answer_is_good(&answer) || answer.status == 404)) ||
	       cni_fail_call(fault, CNI_REFUSED, CNI_TRY_AGAIN, "the guard cannot be ended",
	               &answer, rc, request->socket);
	control_answer_free(&answer);
	return done;
}
