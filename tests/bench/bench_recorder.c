/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one event costs the recorder: decoding, formatting, hashing into the chain, and its share of
 * a write. CPU time of the process, nanoseconds per event. Last, what jansson takes to build the
 * tree of the same line and to write it as text (docs/decisions.md).
 *
 * usage: bench_recorder [EVENTS [FILE]]
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cpu.h"
#include "recorder/output/log_file.h"
#include "recorder/ocsf/ocsf.h"
#include "recorder/recorder.h"

#include "../unit/recorder/samples.h"

#define EVENTS 200000

static void must(int rc, const char *what)
{
	if (rc == 0)
		return;
	fprintf(stderr, "bench_recorder: %s: %s\n", what, strerror(-rc));
	exit(1);
}

static void measure(struct log_file *log, struct ocsf_sandbox *sandbox, const char *name,
        struct event event, long count)
{
	uint8_t record[EVENT_BYTES_MAX];
	struct event decoded;
	double start = cpu_ns(), formatted = 0, encoded;
	size_t n = 0, bytes = 0;

	for (long i = 0; i < count; i++) {
		event.id++;
		n = event_encode(&event, record, sizeof(record));
	}
	encoded = cpu_ns() - start;
	start = cpu_ns();
	for (long i = 0; i < count; i++) {
		must(log->pending.len ? 0 : log_file_begin(log), "begin");
		must(event_decode(record, n, &decoded), "decode");
		must(ocsf_append(&log->pending, &log->chain, sandbox, &decoded), "format");
		if (log->pending.len < RECORDER_BATCH_BYTES / 4 && i + 1 < count)
			continue;
		bytes += log->pending.len;
		formatted -= cpu_ns();
		must(log_file_flush(log), "write");
		formatted += cpu_ns();
	}
	start = cpu_ns() - start;
	printf("%-24s encode %4.0f ns (%3zu bytes), record %5.0f ns of which write %4.0f (%4.0f "
	       "bytes a line)\n",
	        name, encoded / (double)count, n, start / (double)count, formatted / (double)count,
	        (double)bytes / (double)count);
}

/* The first line of the file. */
static void measure_jansson(const char *path, long count)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t size = 0;
	ssize_t n = f ? getline(&line, &size, f) : -1;
	json_t *event = n > 0 ? json_loadb(line, (size_t)n, 0, NULL) : NULL;
	double start = cpu_ns();

	must(event ? 0 : -EBADMSG, "a line of the log");
	for (long i = 0; i < count; i++) {
		json_t *built = json_deep_copy(event);
		char *text = json_dumps(built, JSON_COMPACT);

		must(text ? 0 : -ENOMEM, "jansson");
		free(text);
		json_decref(built);
	}
	start = cpu_ns() - start;
	printf("jansson: the first line  build and write %5.0f ns (%zd bytes a line)\n",
	        start / (double)count, n);
	json_decref(event);
	free(line);
	fclose(f);
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : EVENTS;
	const char *path = argc > 2 ? argv[2] : "/tmp/bench_recorder.jsonl";
	struct ocsf_sandbox sandbox;
	struct log_file log;
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || count < 1) {
		fprintf(stderr, "usage: bench_recorder [EVENTS [FILE]]\n");
		return 2;
	}
	must(log_file_open(&log, fd, open(path, O_RDONLY | O_CLOEXEC), slice_from_string(path),
	             RECORDER_PENDING_MAX),
	        "open");
	must(ocsf_sandbox_init(&sandbox, 1, SLICE("agent-7"), SLICE("coding-agent"),
	             SLICE("3f0c9a51d2e84b77")),
	        "sandbox");
	measure(&log, &sandbox, "HTTP request, allowed", sample_http(), count);
	measure(&log, &sandbox, "HTTP request, denied", sample_denied(), count);
	measure(&log, &sandbox, "DNS query", sample_dns(), count);
	measure(&log, &sandbox, "connection", sample_connection(), count);
	measure(&log, &sandbox, "dropped packet", sample_packet(), count);
	measure(&log, &sandbox, "finding", sample_finding(EVENT_FINDING_BINDING_MISMATCH), count);
	ocsf_sandbox_fini(&sandbox);
	log_file_close(&log);
	measure_jansson(path, count);
	if (argc <= 2)
		unlink(path);
	return 0;
}
