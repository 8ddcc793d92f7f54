/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each message is read as far as it has come. What can be refused by its first bytes is refused at
 * once, before the rest has come: a client that means another protocol sends no more of this one.
 */
#include "vethguard/wire/socks5.h"

#define HEAD_BYTES 4

enum { ADDRESS_IPV4 = 1, ADDRESS_NAME = 3, ADDRESS_IPV6 = 4 };

static enum socks5_status bad_greeting(struct socks5_greeting *out, const char *why)
{
	*out = (struct socks5_greeting){.why = why};
	return SOCKS5_BAD;
}

enum socks5_status socks5_greeting_parse(const uint8_t *p, size_t n, struct socks5_greeting *out)
{
	struct reader r = reader_over(p, n);
	uint8_t version = reader_u8(&r);
	struct slice methods;

	*out = (struct socks5_greeting){.why = ""};
	if (r.failed)
		return SOCKS5_MORE;
	if (version != SOCKS5_VERSION)
		return bad_greeting(out, "a greeting of another version than SOCKS5");
	methods = reader_vector(&r, 1, UINT8_MAX);
	if (r.failed)
		return SOCKS5_MORE;
	out->no_authentication =
	        methods.n && memchr(methods.p, SOCKS5_NO_AUTHENTICATION, methods.n);
	out->password = methods.n && memchr(methods.p, SOCKS5_PASSWORD, methods.n);
	out->used = n - r.left;
	return SOCKS5_DONE;
}

enum socks5_status socks5_login_parse(const uint8_t *p, size_t n, struct socks5_login *out)
{
	struct reader r = reader_over(p, n);
	uint8_t version = reader_u8(&r);
	struct slice user, password;

	*out = (struct socks5_login){.user = SLICE(""), .password = SLICE(""), .why = ""};
	if (!r.failed && version != SOCKS5_LOGIN_VERSION) {
		out->why = "a SOCKS login of another version";
		return SOCKS5_BAD;
	}
	user = reader_vector(&r, 1, UINT8_MAX);
	password = reader_vector(&r, 1, UINT8_MAX);
	if (r.failed)
		return SOCKS5_MORE;
	out->user = user;
	out->password = password;
	out->used = n - r.left;
	return SOCKS5_DONE;
}

static enum socks5_status bad_request(
        struct socks5_request *out, enum socks5_reply reply, const char *why)
{
	*out = (struct socks5_request){.name = SLICE(""), .reply = reply, .why = why};
	return SOCKS5_BAD;
}

/* Looks at the bytes of the head that have come. */
static enum socks5_status check_head(const uint8_t *p, size_t n, struct socks5_request *out)
{
	if (n > 0 && p[0] != SOCKS5_VERSION)
		return bad_request(out, SOCKS5_FAILURE, "a SOCKS request of another version");
	if (n > 1 && (p[1] == 0 || p[1] > SOCKS5_UDP_ASSOCIATE))
		return bad_request(out, SOCKS5_NO_COMMAND, "an unknown command of SOCKS");
	if (n > 1 && p[1] != SOCKS5_CONNECT && p[1] != SOCKS5_UDP_ASSOCIATE)
		return bad_request(
		        out, SOCKS5_NO_COMMAND, "the SOCKS command BIND, which is not served");
	if (n > 2 && p[2] != 0)
		return bad_request(
		        out, SOCKS5_FAILURE, "a SOCKS request whose reserved byte is not 0");
	if (n > 3 && p[3] != ADDRESS_IPV4 && p[3] != ADDRESS_NAME && p[3] != ADDRESS_IPV6)
		return bad_request(out, SOCKS5_NO_ADDRESS_TYPE, "an unknown address type of SOCKS");
	return n < HEAD_BYTES ? SOCKS5_MORE : SOCKS5_DONE;
}

static void read_address(struct reader *r, uint8_t type, struct slice *name, struct ip *address)
{
	if (type == ADDRESS_NAME) {
		*name = reader_vector(r, 1, SOCKS5_NAME_MAX);
		return;
	}
	address->family = type == ADDRESS_IPV4 ? 4 : 6;
	reader_copy(r, address->bytes, type == ADDRESS_IPV4 ? 4 : 16);
}

enum socks5_status socks5_request_parse(const uint8_t *p, size_t n, struct socks5_request *out)
{
	struct reader r = reader_over(p, n);
	enum socks5_status head;

	*out = (struct socks5_request){.name = SLICE(""), .why = ""};
	head = check_head(p, n, out);
	if (head != SOCKS5_DONE)
		return head;
	reader_bytes(&r, HEAD_BYTES);
	if (p[3] == ADDRESS_NAME && n > HEAD_BYTES && p[HEAD_BYTES] == 0)
		return bad_request(out, SOCKS5_FAILURE, "a SOCKS request for an empty name");
	out->command = (enum socks5_command)p[1];
	read_address(&r, p[3], &out->name, &out->address);
	out->port = reader_u16(&r);
	if (r.failed) {
		*out = (struct socks5_request){.name = SLICE(""), .why = ""};
		return SOCKS5_MORE;
	}
	if (out->port == 0 && out->command == SOCKS5_CONNECT)
		return bad_request(out, SOCKS5_FAILURE, "a SOCKS request for port 0");
	out->used = n - r.left;
	return SOCKS5_DONE;
}

void socks5_answer(enum socks5_reply reply, uint8_t out[SOCKS5_ANSWER_BYTES])
{
	memset(out, 0, SOCKS5_ANSWER_BYTES);
	out[0] = SOCKS5_VERSION;
	out[1] = (uint8_t)reply;
	out[3] = ADDRESS_IPV4;
}

/* Writes type, address and port. Returns the size. */
static size_t write_address(const struct ip *address, uint16_t port, uint8_t *out)
{
	const size_t n = address->family == 6 ? 16 : 4;

	out[0] = address->family == 6 ? ADDRESS_IPV6 : ADDRESS_IPV4;
	memcpy(out + 1, address->bytes, n);
	out[1 + n] = (uint8_t)(port >> 8);
	out[2 + n] = (uint8_t)port;
	return 3 + n;
}

size_t socks5_answer_association(
        const struct ip *address, uint16_t port, uint8_t out[SOCKS5_ANSWER_MAX])
{
	out[0] = SOCKS5_VERSION;
	out[1] = SOCKS5_SUCCEEDED;
	out[2] = 0;
	return 3 + write_address(address, port, out + 3);
}

/* --- a client's side --- */

size_t socks5_ask_association(struct slice token, uint8_t out[SOCKS5_ASK_MAX])
{
	static const uint8_t greeting[] = {SOCKS5_VERSION, 1, SOCKS5_PASSWORD};
	static const uint8_t request[] = {
	        SOCKS5_VERSION, SOCKS5_UDP_ASSOCIATE, 0, ADDRESS_IPV4, 0, 0, 0, 0, 0, 0};
	struct slice user = SLICE("session"), password = token;
	uint8_t *at = out;

	if (!token.n || token.n > SOCKS5_TOKEN_MAX)
		return 0;
	if (token.n > UINT8_MAX) {
		user = slice_of(token.p, UINT8_MAX);
		password = slice_of(token.p + UINT8_MAX, token.n - UINT8_MAX);
	}
	memcpy(at, greeting, sizeof(greeting));
	at += sizeof(greeting);
	*at++ = SOCKS5_LOGIN_VERSION;
	*at++ = (uint8_t)user.n;
	memcpy(at, user.p, user.n);
	at += user.n;
	*at++ = (uint8_t)password.n;
	memcpy(at, password.p, password.n);
	at += password.n;
	memcpy(at, request, sizeof(request));
	return (size_t)(at - out) + sizeof(request);
}

static enum socks5_status bad_answers(
        struct socks5_association *out, uint8_t reply, const char *why)
{
	*out = (struct socks5_association){.reply = reply, .why = why};
	return SOCKS5_BAD;
}

static const char *reply_text(uint8_t reply)
{
	switch (reply) {
	case SOCKS5_FAILURE:
		return "no UDP association is possible at the moment";
	case SOCKS5_NOT_ALLOWED:
		return "the session's policy has no udp:// rule";
	case SOCKS5_NO_COMMAND:
		return "UDP associations are not served there";
	default:
		return "the server refuses the UDP association";
	}
}

/* Looks at the bytes before the address that have come. */
static enum socks5_status check_answers(const uint8_t *p, size_t n, struct socks5_association *out)
{
	if (n > 0 && p[0] != SOCKS5_VERSION)
		return bad_answers(out, 0, "the server does not speak SOCKS5");
	if (n > 1 && p[1] != SOCKS5_PASSWORD)
		return bad_answers(out, 0, "the server does not accept a user and password");
	if (n > 2 && p[2] != SOCKS5_LOGIN_VERSION)
		return bad_answers(out, 0, "the answer to the login is of another version");
	if (n > 3 && p[3] != 0) {
		bad_answers(out, 0, "the server does not take the token");
		out->login_wrong = true;
		return SOCKS5_BAD;
	}
	if (n > 4 && p[4] != SOCKS5_VERSION)
		return bad_answers(out, 0, "the answer to the request is of another version");
	if (n > 5 && p[5] != SOCKS5_SUCCEEDED)
		return bad_answers(out, p[5], reply_text(p[5]));
	if (n > 6 && p[6] != 0)
		return bad_answers(out, 0, "the reserved byte of the answer is not 0");
	if (n > 7 && p[7] != ADDRESS_IPV4 && p[7] != ADDRESS_IPV6)
		return bad_answers(out, 0, "the answer has no address");
	return n < 4 + HEAD_BYTES ? SOCKS5_MORE : SOCKS5_DONE;
}

enum socks5_status socks5_association_parse(
        const uint8_t *p, size_t n, struct socks5_association *out)
{
	struct reader r = reader_over(p, n);
	enum socks5_status head;
	struct slice name;

	*out = (struct socks5_association){.why = ""};
	head = check_answers(p, n, out);
	if (head != SOCKS5_DONE)
		return head;
	reader_bytes(&r, 4 + HEAD_BYTES);
	read_address(&r, p[7], &name, &out->address);
	out->port = reader_u16(&r);
	if (r.failed) {
		*out = (struct socks5_association){.why = ""};
		return SOCKS5_MORE;
	}
	if (out->port == 0)
		return bad_answers(out, 0, "the answer names port 0");
	out->used = n - r.left;
	return SOCKS5_DONE;
}

/* --- datagrams --- */

bool socks5_header_parse(const uint8_t *p, size_t n, struct socks5_header *out)
{
	struct reader r = reader_over(p, n);
	const uint16_t reserved = reader_u16(&r);
	const uint8_t fragment = reader_u8(&r), type = reader_u8(&r);
	struct socks5_header h = {.name = SLICE("")};

	*out = h;
	if (r.failed || reserved != 0 || fragment != 0 ||
	        (type != ADDRESS_IPV4 && type != ADDRESS_NAME && type != ADDRESS_IPV6))
		return false;
	read_address(&r, type, &h.name, &h.address);
	h.port = reader_u16(&r);
	if (r.failed || h.port == 0 || (type == ADDRESS_NAME && !h.name.n))
		return false;
	h.used = n - r.left;
	*out = h;
	return true;
}

size_t socks5_header_write(
        struct slice name, const struct ip *address, uint16_t port, uint8_t out[SOCKS5_HEADER_MAX])
{
	memset(out, 0, 3);
	if (!name.n || name.n > SOCKS5_NAME_MAX)
		return 3 + write_address(address, port, out + 3);
	out[3] = ADDRESS_NAME;
	out[4] = (uint8_t)name.n;
	memcpy(out + 5, name.p, name.n);
	out[5 + name.n] = (uint8_t)(port >> 8);
	out[6 + name.n] = (uint8_t)port;
	return 7 + name.n;
}
