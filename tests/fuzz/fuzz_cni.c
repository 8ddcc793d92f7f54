/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input of vethguard-cni from a container runtime, and the answer of an earlier plugin. The
 * first line of the input is CNI_COMMAND, the second CNI_ARGS, the rest standard input. What is
 * accepted can be named, labeled and answered; what is refused has a reason without control
 * characters.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cni/result.h"
#include "cni/sandbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void require_plain(const char *text)
{
	for (; *text; text++)
		require((unsigned char)*text >= ' ' && *text != 0x7f);
}

/* Takes a line as a text of its own, which the caller frees. */
static char *take_line(struct slice *rest)
{
	const ptrdiff_t end = slice_find_byte(*rest, '\n');
	const size_t n = end < 0 ? rest->n : (size_t)end;
	char *line = strndup(rest->n ? rest->p : "", n);

	require(line != NULL);
	*rest = end < 0 ? slice_of(NULL, 0) : slice_of(rest->p + n + 1, rest->n - n - 1);
	return line;
}

static void answer(const struct cni_request *request)
{
	json_t *sandbox =
	        json_pack("{s:{s:s, s:s}}", "addresses", "gate4", "198.18.0.1", "gate6", "fd76::1");
	char name[CNI_SANDBOX_NAME_MAX + 1];
	struct cni_addresses addresses;
	struct cni_fault fault;
	json_t *labels = cni_sandbox_labels(request), *result = NULL;

	cni_sandbox_name(request, name);
	require(cni_is_name(name, CNI_SANDBOX_NAME_MAX));
	if (request->previous && cni_result_addresses(request, &addresses, &fault))
		result = cni_result_of_previous(request, sandbox);
	json_decref(result);
	json_decref(labels);
	json_decref(sandbox);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice rest = slice_of(data, size);
	char *command = take_line(&rest), *arguments = take_line(&rest);
	const struct cni_environment environment = {.command = command,
	        .container = "c0ffee",
	        .netns = "/proc/self/ns/net",
	        .interface = "eth0",
	        .arguments = arguments};
	struct cni_request request;
	struct cni_fault fault;

	if (cni_request_read(&request, &environment, rest, &fault)) {
		if (request.command == CNI_ADD || request.command == CNI_CHECK)
			answer(&request);
	} else {
		require(fault.code > 0 && fault.message[0]);
		require_plain(fault.message);
		require_plain(fault.details);
	}
	cni_request_free(&request);
	free(command);
	free(arguments);
	return 0;
}
