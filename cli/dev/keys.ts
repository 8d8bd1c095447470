// The keys of `mcp-host dev`.
export const KEY_HELP = `  r  restart, for changes that cannot be reloaded, such as a port or a new plugin
  o  open the console in the browser; the first URL if the config has \`console: false\`
  e  open the first URL in the browser
  q  quit
  ?  print this list`
