/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_git: any bytes as the body of a push and of a fetch, as they are and compressed. What is
 * read lies inside of the body, names of refs are sound, and a change that was proven is one that a
 * second reading proves too. Bytes behind the end of what was read are refused.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "git/ref.h"
#include "vethguard/git/body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
	if (!good)
		abort();
}

static bool next_field(const void *context, size_t *at, struct policy_field *out)
{
	const char *const *lines = context;
	const char *colon;

	if (!lines[*at])
		return false;
	colon = strchr(lines[*at], ':');
	*out = (struct policy_field){
	        slice_of(lines[*at], (size_t)(colon - lines[*at])), slice_from_string(colon + 1)};
	++*at;
	return true;
}

static const char push_type[] = "content-type:application/x-git-receive-pack-request";
static const char fetch_type[] = "content-type:application/x-git-upload-pack-request";

static void read_body(
        struct policy_body *body, const char *type, const char *coding, struct slice text)
{
	const char *const lines[] = {type, coding, NULL};
	const struct policy_fields fields = {lines, next_field};

	git_body_read(body, &fields, text);
	must(body->kind == POLICY_BODY_OTHER ? body->fault != NULL : body->git != NULL);
}

static bool is_inside(struct slice part, struct slice text)
{
	return part.p >= text.p && part.p + part.n <= text.p + text.n;
}

static void compare(const struct policy_body *a, const struct policy_body *b)
{
	must(a->kind == b->kind && a->git->command_count == b->git->command_count);
	for (size_t i = 0; i < a->git->command_count; i++)
		must(a->git->commands[i].change == b->git->commands[i].change &&
		        slice_equals(a->git->commands[i].ref, b->git->commands[i].ref));
}

static void check_push(const struct policy_body *body)
{
	const struct policy_git *git = body->git;

	must(git->command_count <= GIT_COMMANDS_MAX && git->option_count <= GIT_OPTIONS_MAX);
	for (size_t i = 0; i < git->command_count; i++)
		must(ref_is_sound(git->commands[i].ref) &&
		        is_inside(git->commands[i].ref, body->text));
	for (size_t i = 0; i < git->option_count; i++)
		must(is_inside(git->options[i], body->text));
}

/* The same body, compressed by gzip, is read as the same. */
static void compress_and_compare(const struct policy_body *body, const char *type)
{
	uint8_t *out = malloc(body->text.n + 1024);
	z_stream z = {.next_in = (Bytef *)body->text.p,
	        .avail_in = (uInt)body->text.n,
	        .next_out = out,
	        .avail_out = (uInt)body->text.n + 1024};
	struct policy_body other;

	must(out && deflateInit2(&z, 0, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK);
	must(deflate(&z, Z_FINISH) == Z_STREAM_END);
	read_body(&other, type, "content-encoding:gzip", slice_of(out, z.total_out));
	compare(body, &other);
	policy_body_fini(&other);
	deflateEnd(&z);
	free(out);
}

static void check(const char *type, struct slice text)
{
	struct policy_body body;

	read_body(&body, type, NULL, text);
	if (body.kind == POLICY_BODY_GIT_PUSH)
		check_push(&body);
	if (body.kind != POLICY_BODY_OTHER)
		compress_and_compare(&body, type);
	policy_body_fini(&body);
	read_body(&body, type, "content-encoding:gzip", text);
	policy_body_fini(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 1u << 20)
		return 0;
	check(push_type, slice_of(data, size));
	check(fetch_type, slice_of(data, size));
	return 0;
}
