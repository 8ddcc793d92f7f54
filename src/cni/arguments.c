/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CNI_ARGS. Kubernetes' runtimes name the pod in it, and ask with IgnoreUnknown=1 to overlook keys
 * that a plugin does not know. Without that, an unknown key is an error, because its wish would not
 * be fulfilled.
 */
#include <string.h>

#include "cni/request.h"

#define SHOWN_MAX 96

struct argument {
	const char *name;
	char *out; /* NULL: the value is ignored */
	size_t max;
};

static bool wrong(struct cni_fault *fault, struct slice pair, const char *why)
{
	char shown[SHOWN_MAX];

	return cni_fail(fault, CNI_INVALID_ENVIRONMENT, "CNI_ARGS is invalid", "\"%s\": %s",
	        slice_escape(pair, shown, sizeof(shown)), why);
}

static bool is_true(struct slice value)
{
	return slice_equals(value, SLICE("1")) || slice_equals_ignoring_case(value, SLICE("true"));
}

static bool take(const struct argument *argument, struct slice pair, struct slice value,
        struct cni_fault *fault)
{
	if (!argument->out || value.n == 0)
		return true;
	if (value.n > argument->max)
		return wrong(fault, pair, "the value is too long");
	memcpy(argument->out, value.p, value.n);
	argument->out[value.n] = '\0';
	if (cni_is_name(argument->out, argument->max))
		return true;
	argument->out[0] = '\0';
	return wrong(fault, pair,
	        "the value has other bytes than letters, digits, '.', '_' and '-', or does not "
	        "begin with a letter or digit");
}

/* Takes what stands before the next ';' from *text. False: it was the last. */
static bool next_pair(struct slice *text, struct slice *pair)
{
	const ptrdiff_t end = slice_find_byte(*text, ';');

	*pair = slice_of(text->p, end < 0 ? text->n : (size_t)end);
	*text = end < 0 ? slice_of(NULL, 0)
	                : slice_of(text->p + end + 1, text->n - (size_t)end - 1);
	return end >= 0;
}

bool cni_arguments_read(struct cni_pod *pod, const char *text, struct cni_fault *fault)
{
	const struct argument known[] = {{"IgnoreUnknown", NULL, 0},
	        {"K8S_POD_NAMESPACE", pod->namespace, CNI_NAMESPACE_MAX},
	        {"K8S_POD_NAME", pod->name, CNI_POD_MAX}, {"K8S_POD_UID", pod->uid, CNI_UID_MAX},
	        {"K8S_POD_INFRA_CONTAINER_ID", NULL, 0}};
	struct slice rest = slice_from_string(text), unknown = {NULL, 0}, pair;
	bool more = rest.n > 0, ignore = false;

	memset(pod, 0, sizeof(*pod));
	if (rest.n > CNI_ARGUMENTS_MAX)
		return cni_fail(fault, CNI_INVALID_ENVIRONMENT, "CNI_ARGS is too long",
		        "it has more than %d bytes", CNI_ARGUMENTS_MAX);
	while (more) {
		const struct argument *found = NULL;

		more = next_pair(&rest, &pair);
		if (pair.n == 0)
			continue;
		const ptrdiff_t equals = slice_find_byte(pair, '=');
		if (equals <= 0)
			return wrong(fault, pair, "it has not the form KEY=VALUE");
		const struct slice key = slice_of(pair.p, (size_t)equals);
		const struct slice value =
		        slice_of(pair.p + equals + 1, pair.n - (size_t)equals - 1);
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (slice_equals(key, slice_from_string(known[i].name)))
				found = &known[i];
		if (found == known)
			ignore = is_true(value);
		else if (!found)
			unknown = pair;
		else if (!take(found, pair, value, fault))
			return false;
	}
	return ignore || !unknown.p ||
	       wrong(fault, unknown,
	               "vethguard-cni does not know this key (IgnoreUnknown=1 overlooks it)");
}
