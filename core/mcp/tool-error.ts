// What a tool fails with, where the model is to read why.
import { isBranded } from '../http/describe-thrown.ts'

const TOOL_ERROR = Symbol.for('mcp-host.ToolError')

/** A failure whose message is meant for the model: it becomes the text of a result with `isError`. */
export class ToolError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ToolError'
    Object.defineProperty(this, TOOL_ERROR, { value: true })
  }

  /** True for a ToolError of any copy of this module. */
  static is(value: unknown): value is ToolError {
    return isBranded(value, TOOL_ERROR)
  }
}
