// What the two tools of this plugin are called.
export const FIND_TOOLS = 'find_tools'
export const CALL_TOOL = 'call_tool'

export const isOwn = (name: string): boolean => name === FIND_TOOLS || name === CALL_TOOL
