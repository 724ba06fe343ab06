#!/bin/sh
# Turns a title into the last part of an address: "My first post" becomes "my-first-post".
printf '%s\n' "$1" | tr 'A-Z' 'a-z' | tr ' ' '-'
