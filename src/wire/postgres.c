/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a client's first message has no type, only a length and a number that is a
 * protocol version or one of three requests. Bytes of another protocol give an impossible length,
 * so their first four bytes are enough to refuse them. All other messages have a type and a length;
 * the readers here take one whole message at a time.
 */
#include "vethguard/wire/postgres.h"

#define LENGTH_BYTES 4
#define STARTUP_HEAD 8
#define MESSAGE_HEAD 5
#define MAJOR 3
#define NUMBER_CANCEL 80877102 /* 1234 * 65536 + 5678 */
#define NUMBER_SSL 80877103
#define NUMBER_GSS 80877104
#define MECHANISMS_MAX 16
#define CODE_BYTES 5
#define VERSION_3_0 (MAJOR << 16)

static enum postgres_status bad(struct postgres_startup *out, const char *why)
{
	*out = (struct postgres_startup){.why = why};
	return POSTGRES_BAD;
}

/* Takes a text up to its NUL off *rest, and returns it without the NUL. */
static struct slice take_text(struct slice *rest, bool *failed)
{
	const char *end = rest->n ? memchr(rest->p, 0, rest->n) : NULL;
	struct slice text;

	if (!end) {
		*failed = true;
		*rest = SLICE("");
		return SLICE("");
	}
	text = slice_of(rest->p, (size_t)(end - rest->p));
	*rest = slice_of(end + 1, rest->n - text.n - 1);
	return text;
}

bool postgres_parameter_next(struct slice *rest, struct slice *name, struct slice *value)
{
	bool failed = false;

	*name = take_text(rest, &failed);
	*value = take_text(rest, &failed);
	return !failed && name->n;
}

bool postgres_is_option(struct slice name)
{
	return slice_starts_with(name, SLICE("_pq_."));
}

/* Notes the parameter if out has a member for it. Returns NULL, or what is wrong with it. */
static const char *take_parameter(
        struct postgres_startup *out, struct slice name, struct slice value)
{
	bool user = slice_equals(name, SLICE("user"));
	struct slice *place = user ? &out->user : &out->database;

	if (postgres_is_option(name))
		out->options++;
	if (slice_equals(name, SLICE("replication")))
		out->replicates = true;
	if (!user && !slice_equals(name, SLICE("database")))
		return NULL;
	if (place->n)
		return user ? "a startup message with two users"
		            : "a startup message with two databases";
	if (value.n > POSTGRES_NAME_MAX)
		return user ? "a user's name that is too long"
		            : "a database's name that is too long";
	*place = value;
	return NULL;
}

/* Parses name and value of each parameter, and the NUL behind the last one. */
static enum postgres_status parse_parameters(struct postgres_startup *out, struct slice body)
{
	struct slice rest = body, name, value;
	const char *why = NULL;
	size_t count = 0;

	if (!body.n || body.p[body.n - 1])
		return bad(out, "a startup message without its end");
	rest.n--;
	out->parameters = rest;
	while (rest.n && !why) {
		if (!postgres_parameter_next(&rest, &name, &value))
			return bad(out, "a malformed startup message");
		why = ++count > POSTGRES_PARAMETERS_MAX ? "too many parameters in a startup message"
		                                        : take_parameter(out, name, value);
	}
	if (why)
		return bad(out, why);
	return out->user.n ? POSTGRES_DONE : bad(out, "a startup message without a user");
}

static enum postgres_status parse_number(
        struct postgres_startup *out, uint32_t number, struct slice body)
{
	switch (number) {
	case NUMBER_SSL:
	case NUMBER_GSS:
		out->kind = number == NUMBER_SSL ? POSTGRES_ASKS_TLS : POSTGRES_ASKS_GSS;
		return body.n ? bad(out, "a malformed request for encryption") : POSTGRES_DONE;
	case NUMBER_CANCEL:
		out->kind = POSTGRES_CANCELS;
		return body.n == POSTGRES_CANCEL_BYTES - STARTUP_HEAD
		               ? POSTGRES_DONE
		               : bad(out, "a malformed request to cancel a query");
	default:
		break;
	}
	if (number >> 16 != MAJOR)
		return bad(out, "another version of PostgreSQL's protocol than 3");
	out->kind = POSTGRES_STARTS;
	out->minor = (uint16_t)number;
	return parse_parameters(out, body);
}

enum postgres_status postgres_startup_parse(
        const uint8_t *p, size_t n, struct postgres_startup *out)
{
	struct reader r = reader_over(p, n);
	uint32_t length = reader_u32(&r), number;
	struct slice body;
	enum postgres_status status;

	*out = (struct postgres_startup){.why = ""};
	if (r.failed)
		return POSTGRES_MORE;
	if (length < STARTUP_HEAD || length > POSTGRES_STARTUP_MAX)
		return bad(out, "not the beginning of PostgreSQL's protocol");
	number = reader_u32(&r);
	body = reader_bytes(&r, length - STARTUP_HEAD);
	if (r.failed)
		return POSTGRES_MORE;
	status = parse_number(out, number, body);
	if (status == POSTGRES_DONE)
		out->used = length;
	return status;
}

enum postgres_status postgres_message_parse(
        const uint8_t *p, size_t n, size_t max, struct postgres_message *out)
{
	struct reader r = reader_over(p, n);
	uint32_t length;

	*out = (struct postgres_message){.body = SLICE("")};
	out->type = reader_u8(&r);
	length = reader_u32(&r);
	if (r.failed)
		return POSTGRES_MORE;
	if (length < LENGTH_BYTES || length > max - 1)
		return POSTGRES_BAD;
	out->body = reader_bytes(&r, length - LENGTH_BYTES);
	if (r.failed) {
		out->body = SLICE("");
		return POSTGRES_MORE;
	}
	out->used = (size_t)length + 1;
	return POSTGRES_DONE;
}

static bool parse_mechanisms(struct slice rest, struct postgres_authentication *out)
{
	bool failed = false;

	for (size_t i = 0; i < MECHANISMS_MAX; i++) {
		struct slice name = take_text(&rest, &failed);

		if (failed)
			return false;
		if (!name.n)
			return !rest.n;
		out->scram |= slice_equals(name, SLICE("SCRAM-SHA-256"));
		out->scram_plus |= slice_equals(name, SLICE("SCRAM-SHA-256-PLUS"));
	}
	return false;
}

bool postgres_authentication_parse(struct slice body, struct postgres_authentication *out)
{
	struct reader r = reader_over(body.p, body.n);

	*out = (struct postgres_authentication){.kind = reader_u32(&r), .data = SLICE("")};
	if (r.failed)
		return false;
	switch (out->kind) {
	case POSTGRES_AUTH_MD5:
		reader_copy(&r, out->salt, sizeof(out->salt));
		return reader_done(&r);
	case POSTGRES_AUTH_SASL:
		return parse_mechanisms(slice_of(r.p, r.left), out);
	case POSTGRES_AUTH_SASL_CONTINUE:
	case POSTGRES_AUTH_SASL_FINAL:
		out->data = slice_of(r.p, r.left);
		return true;
	case POSTGRES_AUTH_OK:
	case POSTGRES_AUTH_CLEARTEXT:
		return reader_done(&r);
	default:
		return true;
	}
}

struct slice postgres_error_code(struct slice body)
{
	bool failed = false;

	while (body.n && body.p[0]) {
		char field = body.p[0];
		struct slice value;

		body = slice_of(body.p + 1, body.n - 1);
		value = take_text(&body, &failed);
		if (failed || field != 'C')
			continue;
		for (size_t i = 0; i < value.n; i++)
			if (!((value.p[i] >= '0' && value.p[i] <= '9') ||
			            (value.p[i] >= 'A' && value.p[i] <= 'Z')))
				return SLICE("");
		return value.n == CODE_BYTES ? value : SLICE("");
	}
	return SLICE("");
}

/* --- writing --- */

void postgres_write_ssl_request(struct writer *w)
{
	writer_u32(w, POSTGRES_SSL_REQUEST_BYTES);
	writer_u32(w, NUMBER_SSL);
}

static void write_text(struct writer *w, struct slice text)
{
	writer_bytes(w, text.p, text.n);
	writer_u8(w, 0);
}

void postgres_write_startup(struct writer *w, struct slice user, struct slice parameters)
{
	uint8_t bytes[POSTGRES_STARTUP_MAX];
	struct writer body = writer_over(bytes, sizeof(bytes));
	struct slice rest = parameters, name, value;

	write_text(&body, SLICE("user"));
	write_text(&body, user);
	while (postgres_parameter_next(&rest, &name, &value)) {
		if (slice_equals(name, SLICE("user")) || postgres_is_option(name))
			continue;
		write_text(&body, name);
		write_text(&body, value);
	}
	writer_u8(&body, 0);
	w->failed |= body.failed;
	writer_u32(w, (uint32_t)(STARTUP_HEAD + body.len));
	writer_u32(w, VERSION_3_0);
	writer_bytes(w, bytes, body.len);
}

void postgres_write_message(struct writer *w, uint8_t type, const struct slice *parts, size_t count)
{
	size_t n = LENGTH_BYTES;

	for (size_t i = 0; i < count; i++)
		n += parts[i].n;
	w->failed |= n >= POSTGRES_MESSAGE_MAX;
	writer_u8(w, type);
	writer_u32(w, (uint32_t)n);
	for (size_t i = 0; i < count; i++)
		writer_bytes(w, parts[i].p, parts[i].n);
}

void postgres_write_authentication(struct writer *w, enum postgres_auth kind)
{
	const uint8_t number[] = {0, 0, 0, (uint8_t)kind};
	const struct slice body = slice_of(number, sizeof(number));

	postgres_write_message(w, 'R', &body, 1);
}

void postgres_write_negotiation(struct writer *w, const struct postgres_startup *startup)
{
	struct slice rest = startup->parameters, name, value;
	size_t n = 3 * sizeof(uint32_t);

	while (postgres_parameter_next(&rest, &name, &value))
		n += postgres_is_option(name) ? name.n + 1 : 0;
	writer_u8(w, 'v');
	writer_u32(w, (uint32_t)n);
	writer_u32(w, VERSION_3_0);
	writer_u32(w, startup->options);
	for (rest = startup->parameters; postgres_parameter_next(&rest, &name, &value);)
		if (postgres_is_option(name))
			write_text(w, name);
}

void postgres_write_error(struct writer *w, const char code[5], const char *message)
{
	const struct slice parts[] = {SLICE("SFATAL\0VFATAL\0C"), slice_of(code, CODE_BYTES),
	        SLICE("\0M"), slice_from_string(message), SLICE("\0\0")};

	postgres_write_message(w, 'E', parts, sizeof(parts) / sizeof(parts[0]));
}
