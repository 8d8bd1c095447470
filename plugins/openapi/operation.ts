// The parts of an operation that requests, responses and credentials use.
import type { JsonSchema } from '../../core/index.ts'

export type HttpMethod = 'get' | 'put' | 'post' | 'delete' | 'options' | 'head' | 'patch' | 'trace'

export const PLACES = ['path', 'query', 'header', 'cookie'] as const
export type ParameterPlace = (typeof PLACES)[number]

export type ParameterStyle = 'matrix' | 'label' | 'simple' | 'form' | 'spaceDelimited' | 'pipeDelimited' | 'deepObject'

/** The keys from the tool arguments to a value: `['limit']`, or `['query', 'limit']` with grouped arguments. */
export type ArgumentPath = readonly [string, ...string[]]

export interface Parameter {
  /** The name as in the document, which also determines the case of a `header`. */
  readonly name: string
  readonly in: ParameterPlace
  readonly required: boolean
  readonly argument: ArgumentPath
  /** The schema of the value, converted to 2020-12. Every `$ref` points to `Operation.schemas`. */
  readonly schema: JsonSchema
  /** Undefined for a parameter with `content`. The defaults of the specification are filled in. */
  readonly style?: ParameterStyle
  readonly explode: boolean
  readonly allowReserved: boolean
  readonly allowEmptyValue: boolean
  /** The media type of a parameter with `content`, which encodes the value. */
  readonly contentType?: string
}

export interface PropertyEncoding {
  /** The media type as in the document. A comma-separated list names alternatives; the first is used. */
  readonly contentType?: string
  readonly style?: ParameterStyle
  readonly explode?: boolean
  readonly allowReserved?: boolean
}

export type BodyKind = 'json' | 'form' | 'multipart' | 'binary' | 'text'

export interface RequestBody {
  /** Without parameters, such as `application/json` or `application/vnd.api+json`. For `any` types: as chosen here. */
  readonly mediaType: string
  readonly kind: BodyKind
  readonly required: boolean
  /** The schema of the whole body. For `binary`: a string with base64. */
  readonly schema: JsonSchema
  /**
   * `argument`: the whole body is one argument. `properties`: each property of an object body is an argument of its own, by
   * its name in the body. No property present: no body if it is not required, otherwise an empty object.
   */
  readonly from: { readonly argument: ArgumentPath } | { readonly properties: ReadonlyMap<string, ArgumentPath> }
  /** Encodings of `form` and `multipart` properties, by name. */
  readonly encoding: ReadonlyMap<string, PropertyEncoding>
  /** For `multipart`: binary properties. Their arguments are base64, or arrays of base64 (one part for each item). */
  readonly binary: ReadonlySet<string>
}

/** One alternative: all of its schemes are sent. The values are scopes. Empty: no credentials needed. */
export type SecurityRequirement = ReadonlyMap<string, readonly string[]>

export type SecurityScheme =
  | { readonly type: 'apiKey'; readonly name: string; readonly in: 'query' | 'header' | 'cookie' }
  /** The scheme in lower case: `basic`, `bearer`, or another registered scheme. */
  | { readonly type: 'http'; readonly scheme: string }
  | {
      readonly type: 'oauth2'
      readonly tokenUrl?: string
      readonly authorizationUrl?: string
      /** The scopes of all flows. */
      readonly scopes: readonly string[]
    }
  | { readonly type: 'openIdConnect'; readonly openIdConnectUrl: string }
  | { readonly type: 'mutualTLS' }

export interface Operation {
  /** The operationId, or `GET /pets/{id}`, for messages and overrides. */
  readonly id: string
  readonly method: HttpMethod
  /** The path template of the document, such as `/pets/{id}`. It is appended to the path of `baseUrl`. */
  readonly path: string
  /** Absolute, http or https, without a slash at its end, query and fragment. Server variables are filled in. */
  readonly baseUrl: string
  /** Without the header parameters that the specification ignores (`Accept`, `Content-Type`, `Authorization`). */
  readonly parameters: readonly Parameter[]
  readonly body?: RequestBody
  /** The alternatives, in the order of the document. Empty: no credentials are declared. */
  readonly security: readonly SecurityRequirement[]
  /** The media types of successful responses, for `Accept`. */
  readonly accepts: readonly string[]
  /** Schemas by the name that `$ref: '#/$defs/NAME'` in the schemas above uses. */
  readonly schemas: Readonly<Record<string, JsonSchema>>
}

/** Security schemes by name, as in `components.securitySchemes`. Contains every scheme that an operation names. */
export type SecuritySchemes = ReadonlyMap<string, SecurityScheme>

/**
 * The complete arguments of a call: `overrides` have filled in fixed and default values, and all values are valid for
 * the input schema.
 */
export type OperationArguments = Readonly<Record<string, unknown>>
