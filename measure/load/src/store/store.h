/* What an embedded store has to be able to do. */
#include <stddef.h>
#include <stdint.h>

enum { KEY_BYTES = 48, VALUE_BYTES = 104 };

/* How many threads commit at once. */
extern const int store_threads;

/* Says what failed, and ends the program. */
void fail(const char *doing, const char *why);
/* True if the store is to be opened in this way. */
int store_has(const char *word);

/* Opens or makes the store. With `sync` a put is durable when it returns. */
void store_open(const char *directory, int sync);
/* One commit. */
void store_put(const char key[KEY_BYTES], const char value[VALUE_BYTES]);
/* Shows every entry. */
void store_each(void (*found)(const char *key, const char *value));
void store_close(void);
