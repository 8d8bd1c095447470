// The keys of `mcp-host dev`.
export const KEY_HELP = `  r  restart, for changes that cannot be reloaded, such as a port or a new plugin
  o  open the first URL in the browser
  q  quit
  ?  print this list`
