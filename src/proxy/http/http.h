/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http: one request head and one response head as structs, for every version of HTTP. A head is
 * parsed once, authorized as this struct, and written out again from this struct: bytes other than
 * those that were authorized never leave.
 */
#ifndef VETHGUARD_SRC_PROXY_HTTP_HTTP_H
#define VETHGUARD_SRC_PROXY_HTTP_HTTP_H

#include "vethguard/base/buf.h"
#include "vethguard/policy/url.h"

#define HTTP_FIELDS_MAX 128
#define HTTP_HEAD_MAX (64u << 10)    /* bytes of one head; the configured limit is at most this */
#define HTTP_TRAILERS_MAX 64         /* fields per trailer section */
#define HTTP_TRAILER_BYTES_MAX 8192u /* bytes per trailer section */
#define HTTP_AUTHORITY_MAX (POLICY_HOST_MAX + 16)
#define HTTP_TARGET_MAX POLICY_PATH_MAX

/* Statuses of refusals (RFC 9110 section 15). */
#define HTTP_MALFORMED 400
#define HTTP_TARGET_TOO_LONG 414
#define HTTP_EXPECTATION_FAILED 417
#define HTTP_MISDIRECTED 421 /* two destinations: a binding mismatch */
#define HTTP_FIELDS_TOO_LARGE 431
#define HTTP_NOT_IMPLEMENTED 501
#define HTTP_VERSION_UNKNOWN 505
/* Any three digits from here to 999 are passed on. No standard has those from 600 on, but servers
 * use them. */
#define HTTP_STATUS_MIN 100
#define HTTP_STATUS_MAX 999

/* Field names that the proxy itself needs. The order is that of http_field_names[]. */
enum http_name {
	HTTP_OTHER,
	HTTP_ACCEPT_ENCODING,
	HTTP_AUTHORIZATION,
	HTTP_CONNECTION,
	HTTP_CONTENT_ENCODING,
	HTTP_CONTENT_LENGTH,
	HTTP_CONTENT_TYPE,
	HTTP_EXPECT,
	HTTP_HOST,
	HTTP_KEEP_ALIVE,
	HTTP_PROXY_AUTHENTICATE,
	HTTP_PROXY_AUTHORIZATION,
	HTTP_PROXY_CONNECTION,
	HTTP_SEC_WEBSOCKET_EXTENSIONS,
	HTTP_TE,
	HTTP_TRAILER,
	HTTP_TRANSFER_ENCODING,
	HTTP_UPGRADE,
	HTTP_USER_AGENT,
	HTTP_NAME_COUNT
};

struct http_field {
	struct slice name, value;
	enum http_name known;
	bool dropped; /* not to be forwarded */
	bool secret;  /* the value holds a credential while the head is sent */
};

struct http_fields {
	size_t count;
	struct http_field items[HTTP_FIELDS_MAX];
};

enum http_body { HTTP_BODY_NONE, HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED, HTTP_BODY_UNTIL_CLOSE };

/* Slices point into the bytes from which the head was read, or into static text. */
struct http_request {
	struct slice method;
	struct slice target; /* as sent */
	struct slice query;  /* as sent, without '?'; has_query tells an empty query from none */
	bool has_query;
	bool absolute;                  /* absolute-form (RFC 9112 section 3.2.2) */
	bool asterisk;                  /* OPTIONS * */
	enum policy_scheme scheme;      /* absolute-form: as written; else the connection's */
	struct url_authority authority; /* Host, :authority, absolute-form or CONNECT target */
	bool has_authority;
	size_t path_n;
	struct slice protocol; /* of an extended CONNECT (RFC 8441), or empty */
	uint8_t version;       /* 10, 11 or 20 */
	enum http_body body;
	uint64_t content_length;
	bool keep_alive;
	bool expects_continue;
	bool wants_websocket;
	bool wants_upgrade;   /* to something else than a WebSocket, as its Upgrade fields say */
	struct slice upgrade; /* protocol that the upstream is asked for, or empty */
	bool te_trailers;     /* the client accepts trailers (RFC 9110 section 10.1.4) */
	/* Nothing from here on is cleared for a new request: path_n and fields.count tell what is
	 * valid. */
	struct http_fields fields;
	char path[HTTP_TARGET_MAX]; /* canonical */
};

/* A request's head as it leaves: the authorized struct, and what is put into it. Its pointers are
 * valid only during the call it is given to. */
#define OUTGOING_FIELDS_MAX 8
struct outgoing_field {
	struct slice name, value; /* the name is in lower case */
};

struct outgoing {
	const struct http_request *request;
	struct slice path; /* with the credential in it; empty: the request's own */
	bool has_query;
	struct slice query; /* may hold the credential */
	/* The injected fields, whose values hold the credential. Each replaces all of the request's
	 * own fields with its name. */
	struct outgoing_field fields[OUTGOING_FIELDS_MAX];
	size_t field_count;
	bool secret; /* the head holds a credential: locked memory only */
	bool ends;   /* no body follows */
};

static inline struct slice http_outgoing_path(const struct outgoing *head)
{
	return head->path.n ? head->path : slice_of(head->request->path, head->request->path_n);
}

struct http_response {
	uint16_t status;
	struct slice reason;
	uint8_t version;
	enum http_body body;
	uint64_t content_length;
	bool keep_alive;
	struct http_fields fields;
};

/* What is wrong with a head: the status of the refusal, and one sentence (NULL: nothing is
 * wrong). */
struct http_fault {
	uint16_t status;
	const char *why;
};
#define HTTP_SOUND ((struct http_fault){0, NULL})

/* --- http/rules.c --- */

/* Accepts any token of up to POLICY_METHOD_MAX bytes, except those that vethguard/policy/method.h
 * reserves. */
struct http_fault http_check_method(struct slice method);
/* Checks a target's length and bytes. */
struct http_fault http_check_target(struct slice target);
/* True for a valid field value (RFC 9110 section 5.5): no control character except tabs. */
bool http_is_value(struct slice s);
/* Reads Content-Length: a number, given once; in a response, the same number more than once counts
 * as one. Returns NULL, or what is wrong. */
const char *http_read_length(
        const struct http_fields *fields, bool response, bool *has, uint64_t *length);
/* The body of a request without a length and without content: for methods that usually have
 * content, a length of 0, on which some servers insist (RFC 9110 section 8.6); otherwise none. */
enum http_body http_body_of_nothing(struct slice method);
/* Reads Transfer-Encoding: absent, or chunked once and nothing else. */
struct http_fault http_read_codings(const struct http_fields *fields, bool *chunked);
/* Reads Expect: 100-continue or nothing (RFC 9110 section 10.1.1); ignored in HTTP/1.0. */
struct http_fault http_read_expect(struct http_request *r);

/* http/target.c. The next two functions return NULL, or one sentence that says what is wrong. */
/* Parses r->target by its form (RFC 9112 section 3.2): path, query, authority. */
const char *http_parse_target(struct http_request *r);
/* Requires exactly one Host in HTTP/1.1, and at most one otherwise. It must agree with an authority
 * given elsewhere (absolute target, :authority). */
const char *http_parse_host(struct http_request *r);
/* After http_parse_host() has failed: true if the only Host is well-formed but names somebody
 * else. */
bool http_host_is_other(const struct http_request *r);

/* Writes the authority as in Host and :authority, without the scheme's default port. out has
 * HTTP_AUTHORITY_MAX bytes. */
struct slice http_authority_text(const struct http_request *r, char *out);

enum http_name http_name_of(struct slice name);
/* The first field with that name that was not dropped, or NULL. */
const struct http_field *http_find(const struct http_fields *fields, enum http_name known);
/* The next element of a comma-separated list, trimmed; empty elements are skipped (RFC 9110 section
 * 5.6.1.2). False: there is none. */
bool http_list_next(struct slice *rest, struct slice *item);
/* True if a comma-separated list (RFC 9110 section 5.6.1) has the token, in any case of letters. */
bool http_list_has(struct slice list, struct slice token);
/* Drops the fields of this connection only: Connection and all it names, Keep-Alive, Proxy-*, TE,
 * Upgrade, Transfer-Encoding, Content-Length, Host, Expect (RFC 9110 section 7.6.1). Framing is
 * written anew. */
void http_drop_hop_by_hop(struct http_fields *fields);
/* True if a server may take one name for the other: some replace '-' by '_' (RFC 3875 section
 * 4.1.18), or the other way round. */
bool http_names_alike(struct slice a, struct slice b);
/* ... and would take this field for one that tells where the body ends. */
bool http_resembles_framing(const struct http_field *field);
/* Drops every field with that name or a name alike. */
void http_drop(struct http_fields *fields, struct slice name);
/* True if an injected field replaces this one. */
bool http_is_replaced(const struct outgoing *head, const struct http_field *field);
/* Appends a field. False: there are HTTP_FIELDS_MAX already. */
bool http_add(struct http_fields *fields, struct slice name, struct slice value);
/* A trailer section as lines: "name: value" CRLF each. */
struct http_trailers {
	struct buf lines;
	unsigned count;
};

void http_trailers_init(struct http_trailers *trailers);
void http_trailers_free(struct http_trailers *trailers);
/* Appends a line. False: one too many, too many bytes, or no memory; the section is then
 * incomplete. */
bool http_trailers_add(struct http_trailers *trailers, struct slice name, struct slice value);
/* The standard reason phrase, or "". */
struct slice http_reason(uint16_t status);
/* True for a byte that a token may have (RFC 9110 section 5.6.2). */
bool http_is_tchar(uint8_t c);

/* v as text, somewhere in digits. Several times as fast as printf(); every head has some. */
struct slice http_decimal(uint64_t v, char digits[24]);

#endif
