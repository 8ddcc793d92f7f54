/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: libyaml gives events; a stack of open lists and maps, at most TREE_DEPTH_MAX
 * deep, tells where each new node belongs. An alias is a second pointer to a finished node and
 * costs nothing here; its weight is still counted, because readers of the tree walk it again.
 * Building stops at the first fault, since the rest of the file would only give misleading
 * messages.
 */
#include <errno.h>
#include <yaml.h>

#include "policy/compile/intern.h"
#include "policy/yaml/yaml_tree.h"

struct frame {
	struct tree_node *node;
	struct tree_node *key; /* a map's key, until its value comes */
	struct intern keys;    /* the keys of a map so far */
};

struct builder {
	struct tree *tree;
	yaml_parser_t parser;
	struct frame stack[TREE_DEPTH_MAX];
	size_t depth;
	size_t nodes;
	struct intern anchor_names;
	struct vec anchors; /* struct tree_node *; the index is the number of its name */
	int rc;             /* 0, -EINVAL (reported) or -ENOMEM */
};

static void fail_at(struct builder *b, yaml_mark_t mark, const char *message)
{
	if (b->rc == 0)
		diag_add(b->tree->diags, b->tree->file, (unsigned)mark.line + 1,
		        (unsigned)mark.column + 1, "%s", message);
	b->rc = -EINVAL;
}

static void fail_memory(struct builder *b)
{
	if (b->rc == 0)
		b->rc = -ENOMEM;
}

static struct tree_node *new_node(struct builder *b, enum tree_kind kind, yaml_mark_t mark)
{
	struct tree_node *node;

	if (b->nodes >= TREE_NODES_MAX) {
		fail_at(b, mark, "too many values in one file");
		return NULL;
	}
	b->nodes++;
	node = arena_take(b->tree->arena, sizeof(*node));
	if (!node) {
		fail_memory(b);
		return NULL;
	}
	node->kind = kind;
	node->line = (unsigned)mark.line + 1;
	node->column = (unsigned)mark.column + 1;
	node->weight = 1;
	return node;
}

/* The line of a key that the frame's map already has. */
static unsigned line_of_key(const struct frame *frame, struct slice key)
{
	for (const struct tree_item *item = frame->node->first; item; item = item->next)
		if (slice_equals(item->key->text, key))
			return item->key->line;
	return frame->node->line;
}

/* Takes node as the next key of the frame's map. */
static void take_key(
        struct builder *b, struct frame *frame, struct tree_node *node, yaml_mark_t mark)
{
	char quoted[TREE_QUOTE_MAX], message[TREE_QUOTE_MAX + 64];
	uint32_t id;
	bool added;

	if (node->kind != TREE_SCALAR) {
		fail_at(b, mark, "a key must be a plain word, not a list or a mapping");
		return;
	}
	id = intern_put(&frame->keys, node->text, &added);
	if (id == UINT32_MAX) {
		fail_memory(b);
	} else if (!added) {
		snprintf(message, sizeof(message),
		        "the key %s appears twice in this mapping, first in line %u",
		        tree_quote(node->text, quoted), line_of_key(frame, node->text));
		fail_at(b, mark, message);
	}
	frame->key = node;
}

/* Adds a node (new, or reached through an alias) to the innermost open list or map. */
static void place(struct builder *b, struct tree_node *node, yaml_mark_t mark)
{
	struct frame *frame;
	struct tree_item *item;

	if (b->depth == 0) {
		b->tree->root = node;
		return;
	}
	frame = &b->stack[b->depth - 1];
	if (frame->node->kind == TREE_MAP && !frame->key) {
		take_key(b, frame, node, mark);
		return;
	}
	item = arena_take(b->tree->arena, sizeof(*item));
	if (!item) {
		fail_memory(b);
		return;
	}
	item->key = frame->key;
	item->value = node;
	frame->key = NULL;
	if (frame->node->last)
		frame->node->last->next = item;
	else
		frame->node->first = item;
	frame->node->last = item;
	frame->node->count++;
}

/* Adds a finished child's weight to its parent. */
static void add_weight(struct builder *b, size_t weight, yaml_mark_t mark)
{
	struct tree_node *parent;

	if (b->depth == 0)
		return;
	parent = b->stack[b->depth - 1].node;
	if (weight > TREE_NODES_MAX - parent->weight) {
		fail_at(b, mark, "aliases in this file expand to too many values");
		return;
	}
	parent->weight += weight;
}

static void set_anchor(
        struct builder *b, const yaml_char_t *anchor, struct tree_node *node, yaml_mark_t mark)
{
	struct slice name;
	bool added;

	if (!anchor || b->rc)
		return;
	if (b->anchors.n >= TREE_ANCHORS_MAX) {
		fail_at(b, mark, "too many anchors in one file");
		return;
	}
	name = arena_copy(b->tree->arena, slice_from_string((const char *)anchor));
	if (b->tree->arena->failed || intern_put(&b->anchor_names, name, &added) == UINT32_MAX ||
	        (added && !vec_append(&b->anchors, &node, 1)))
		fail_memory(b);
	else if (!added)
		fail_at(b, mark, "this anchor's name is already taken; give it another one");
}

static void refuse_tag(struct builder *b, const yaml_char_t *tag, yaml_mark_t mark)
{
	if (tag && strcmp((const char *)tag, "!") != 0)
		fail_at(b, mark, "tags (\"!...\") are not used here; write the value alone");
}

static void on_scalar(struct builder *b, const yaml_event_t *event)
{
	struct tree_node *node = new_node(b, TREE_SCALAR, event->start_mark);

	refuse_tag(b, event->data.scalar.tag, event->start_mark);
	if (!node || b->rc)
		return;
	node->text = arena_copy(
	        b->tree->arena, slice_of(event->data.scalar.value, event->data.scalar.length));
	node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	node->done = true;
	if (b->tree->arena->failed)
		fail_memory(b);
	set_anchor(b, event->data.scalar.anchor, node, event->start_mark);
	place(b, node, event->start_mark);
	add_weight(b, 1, event->start_mark);
}

static void on_alias(struct builder *b, const yaml_event_t *event)
{
	struct slice name = slice_from_string((const char *)event->data.alias.anchor);
	uint32_t id = intern_find(&b->anchor_names, name);
	struct tree_node *node;

	if (id == UINT32_MAX) {
		fail_at(b, event->start_mark, "no anchor of this name stands before this alias");
		return;
	}
	node = *(struct tree_node **)vec_at(&b->anchors, id);
	if (!node->done) {
		fail_at(b, event->start_mark,
		        "this alias stands inside of its own anchor and would never end");
		return;
	}
	place(b, node, event->start_mark);
	add_weight(b, node->weight, event->start_mark);
}

static void on_start(struct builder *b, const yaml_event_t *event, enum tree_kind kind)
{
	bool map = kind == TREE_MAP;
	const yaml_char_t *anchor =
	        map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
	struct tree_node *node;

	refuse_tag(b, map ? event->data.mapping_start.tag : event->data.sequence_start.tag,
	        event->start_mark);
	if (b->depth == TREE_DEPTH_MAX)
		fail_at(b, event->start_mark, "lists and mappings are nested too deep");
	node = b->rc ? NULL : new_node(b, kind, event->start_mark);
	if (!node)
		return;
	set_anchor(b, anchor, node, event->start_mark);
	place(b, node, event->start_mark);
	if (b->rc)
		return;
	b->stack[b->depth] = (struct frame){.node = node};
	if (map)
		intern_init(&b->stack[b->depth].keys);
	b->depth++;
}

static void pop(struct builder *b)
{
	struct frame *frame = &b->stack[--b->depth];

	if (frame->node->kind == TREE_MAP)
		intern_fini(&frame->keys);
}

static void on_end(struct builder *b, const yaml_event_t *event)
{
	struct tree_node *node = b->stack[b->depth - 1].node;

	pop(b);
	node->done = true;
	add_weight(b, node->weight, event->start_mark);
}

static void on_document(struct builder *b, const yaml_event_t *event)
{
	if (b->tree->root)
		fail_at(b, event->start_mark, "a second document begins here; a file holds one");
}

static void on_event(struct builder *b, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		on_document(b, event);
		break;
	case YAML_SCALAR_EVENT:
		on_scalar(b, event);
		break;
	case YAML_ALIAS_EVENT:
		on_alias(b, event);
		break;
	case YAML_SEQUENCE_START_EVENT:
		on_start(b, event, TREE_LIST);
		break;
	case YAML_MAPPING_START_EVENT:
		on_start(b, event, TREE_MAP);
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		on_end(b, event);
		break;
	default:
		break;
	}
}

/* Line and column of a byte offset, for faults below YAML itself: libyaml gives only an offset for
 * them. */
static yaml_mark_t mark_of_offset(const char *text, size_t n, size_t offset)
{
	yaml_mark_t mark = {0};

	for (size_t i = 0; i < offset && i < n; i++) {
		mark.column++;
		if (text[i] == '\n') {
			mark.line++;
			mark.column = 0;
		}
	}
	return mark;
}

/* The position to report. An unclosed construct is noticed at the end of the file, but the fault is
 * where it begins. */
static yaml_mark_t place_of(const yaml_parser_t *p, const char *text, size_t n)
{
	size_t at = p->problem_mark.index;

	while (at < n && strchr(" \t\r\n", text[at]))
		at++;
	return p->context && at >= n && p->context_mark.index < p->problem_mark.index
	               ? p->context_mark
	               : p->problem_mark;
}

/* libyaml describes faults in terms of its grammar; this says what to do about them. */
static const char *hint_of(const yaml_parser_t *p, const char *text, size_t n)
{
	const char *problem = p->problem ? p->problem : "";
	size_t at = p->problem_mark.index;

	if (at < n && text[at] == '\t')
		return "; there is a tab here; YAML indents with spaces";
	/* "to: *.example.com": the star begins an alias, one byte before text that is not a name */
	if (at > 0 && at <= n && text[at - 1] == '*')
		return "; write what begins with * in quotes: \"*.example.com\"";
	if (at < n && strchr("@`%", text[at]) && strstr(problem, "cannot start any token"))
		return text[at] == '@'   ? "; write what begins with @ in quotes"
		       : text[at] == '%' ? "; write what begins with % in quotes"
		                         : "; write what begins with ` in quotes";
	if (strstr(problem, "expected key") && p->context && strstr(p->context, "block"))
		return "; keys that belong together begin in the same column, and every opened "
		       "quote is closed";
	if (strstr(problem, "expected '-' indicator") || strstr(problem, "expected <block end>"))
		return "; keys that belong together begin in the same column";
	if (strstr(problem, "mapping values are not allowed"))
		return "; a key may be indented too far here, or a text with \": \" needs quotes";
	return "";
}

static void report_syntax(struct builder *b, const char *text, size_t n)
{
	const yaml_parser_t *p = &b->parser;
	const char *problem = p->problem ? p->problem : "unreadable";
	char message[DIAG_MESSAGE_MAX];

	if (p->error == YAML_MEMORY_ERROR) {
		fail_memory(b);
	} else if (p->error == YAML_READER_ERROR) {
		snprintf(message, sizeof(message), "not a UTF-8 text: %s", problem);
		fail_at(b, mark_of_offset(text, n, p->problem_offset), message);
	} else {
		snprintf(message, sizeof(message), "not valid YAML: %s%s%s%s",
		        p->context ? p->context : "", p->context ? ", " : "", problem,
		        hint_of(p, text, n));
		fail_at(b, place_of(p, text, n), message);
	}
}

static void read_events(struct builder *b, const char *text, size_t n)
{
	yaml_event_t event;
	bool end = false;

	/* a byte order mark is not text, but libyaml counts it as a column of the first line */
	if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		text += 3;
		n -= 3;
	}
	yaml_parser_set_encoding(&b->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b->parser, (const unsigned char *)text, n);
	while (!end && b->rc == 0) {
		if (!yaml_parser_parse(&b->parser, &event)) {
			report_syntax(b, text, n);
			return;
		}
		end = event.type == YAML_STREAM_END_EVENT;
		on_event(b, &event);
		yaml_event_delete(&event);
	}
}

int tree_parse(struct tree *tree, const char *text, size_t n)
{
	struct builder b = {.tree = tree};

	tree->root = NULL;
	if (!yaml_parser_initialize(&b.parser))
		return -ENOMEM;
	intern_init(&b.anchor_names);
	vec_init(&b.anchors, sizeof(struct tree_node *));
	read_events(&b, text, n);
	while (b.depth > 0)
		pop(&b);
	yaml_parser_delete(&b.parser);
	intern_fini(&b.anchor_names);
	vec_fini(&b.anchors);
	if (b.rc == 0 && !tree->root) {
		diag_add(tree->diags, tree->file, 1, 1, "the file is empty");
		b.rc = -EINVAL;
	}
	return b.rc;
}
