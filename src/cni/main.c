/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vethguard-cni: a CNI plugin. Container runtimes start it once for each command, with the network
 * configuration on standard input, and read its answer from standard output. It makes no
 * network itself: it asks vethguardd over the control socket. If the daemon is away or
 * says no, ADD fails, and the container does not start.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/buf.h"
#include "vethguard/base/log.h"
#include "vethguard/base/version.h"
#include "cni/operations.h"

static bool (*const operations[])(const struct cni_request *, json_t **, struct cni_fault *) = {
        [CNI_ADD] = cni_add,
        [CNI_DEL] = cni_del,
        [CNI_CHECK] = cni_check,
        [CNI_STATUS] = cni_status,
        [CNI_GC] = cni_gc,
        [CNI_VERSION] = cni_version};
_Static_assert(
        sizeof(operations) / sizeof(operations[0]) == CNI_COMMAND_COUNT, "a function per command");

static int help(void)
{
	fputs("Usage: CNI_COMMAND=COMMAND ... vethguard-cni <CONFIGURATION\n\n"
	      "A CNI plugin (0.4.0, 1.0.0, 1.1.0) that has vethguardd guard containers and pods.\n"
	      "Container runtimes start it; it is put into a network's configuration, and not\n"
	      "started by hand:\n\n"
	      "  {\"cniVersion\": \"1.0.0\", \"name\": \"agents\", \"plugins\": [\n"
	      "    {\"type\": \"vethguard-cni\", \"policy\": \"agent\"}]}\n\n"
	      "Options:\n"
	      "  -h, --help     this text\n"
	      "      --version  the version\n\n"
	      "vethguard-cni(8) tells more.\n",
	        stdout);
	return fflush(stdout) == 0 ? 0 : 1;
}

/* Reads what there is, up to one byte more than is allowed. Returns 0 or -errno. */
static int read_input(struct buf *in)
{
	for (;;) {
		uint8_t *room = in->len > CNI_STDIN_MAX ? NULL : buf_reserve(in, 65536);
		ssize_t n;

		if (!room)
			return in->len > CNI_STDIN_MAX ? 0 : -ENOMEM;
		n = read(STDIN_FILENO, room, 65536);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		buf_commit(in, (size_t)n);
	}
}

static bool print(json_t *answer)
{
	return json_dumpf(answer, stdout, JSON_COMPACT) == 0 && putchar('\n') != EOF &&
	       fflush(stdout) == 0;
}

static bool run(
        struct cni_request *request, struct buf *in, json_t **result, struct cni_fault *fault)
{
	const struct cni_environment environment = {.command = getenv("CNI_COMMAND"),
	        .container = getenv("CNI_CONTAINERID"),
	        .netns = getenv("CNI_NETNS"),
	        .interface = getenv("CNI_IFNAME"),
	        .arguments = getenv("CNI_ARGS")};
	int rc = read_input(in);

	if (rc)
		return cni_fail(fault, CNI_IO_FAILURE, "the network configuration cannot be read",
		        "%s", strerror(-rc));
	return cni_request_read(request, &environment, buf_slice(in), fault) &&
	       operations[request->command](request, result, fault);
}

int main(int argc, char **argv)
{
	struct cni_request request = {.version = CNI_VERSION_NEWEST};
	struct cni_fault fault;
	json_t *result = NULL;
	struct buf in;
	bool done, said;

	log_open("vethguard-cni", LOG_LEVEL_WARN);
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return help();
	if (argc > 1 && strcmp(argv[1], "--version") == 0)
		return puts("vethguard-cni " VERSION_TEXT) < 0 || fflush(stdout) != 0;
	buf_init(&in, CNI_STDIN_MAX + 2 * 65536);
	done = run(&request, &in, &result, &fault);
	if (!done) {
		json_decref(result);
		result = cni_fault_json(&fault, request.version);
	}
	said = !result || print(result);
	if (!said)
		log_error("the answer cannot be written: %s", strerror(errno));
	json_decref(result);
	cni_request_free(&request);
	buf_fini(&in);
	return done && said ? 0 : 1;
}
