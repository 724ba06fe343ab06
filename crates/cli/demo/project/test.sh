#!/bin/sh
# Checks slug.sh. Ends with 0 if all is well.
failed=0
check() {
    got=$(sh ./slug.sh "$1")
    if [ "$got" = "$2" ]; then
        echo "ok    '$1'"
    else
        echo "FAIL  '$1': wanted '$2', got '$got'"
        failed=1
    fi
}
check 'Hello' 'hello'
check 'My first post' 'my-first-post'
check 'Two  spaces' 'two-spaces'
exit $failed
