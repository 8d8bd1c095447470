// The three tools of the shop workload (TM Dev Lab v2), identical on every server. Each uses Redis and the HTTP API of
// shop-api.mjs. Environment: REDIS_URL and API_URL.
import { createClient } from '@redis/client'
import { Pool } from 'undici'

const redis = await createClient({ url: process.env.REDIS_URL }).connect()
const api = new Pool(process.env.API_URL, { connections: 50 })

async function fetchApi(path, body) {
  const request = { path, method: body === undefined ? 'GET' : 'POST' }
  const sent = body === undefined ? {} : { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }
  return (await api.request({ ...request, ...sent })).body.json()
}

async function searchProducts({ category, min_price, max_price, limit }) {
  const query = new URLSearchParams({ category, min_price, max_price, limit })
  const [{ total_found, products }, popular] = await Promise.all([
    fetchApi(`/products/search?${query}`),
    redis.zRange('shop:popular', 0, 9, { REV: true }),
  ])
  const ids = popular.map(member => Number(member.split(':')[1]))
  const ranked = products.map(({ id, sku, name, price, rating }) => {
    return { id, sku, name, price, rating, popularity_rank: ids.indexOf(id) + 1 }
  })
  return { category, total_found, products: ranked, top10_popular_ids: ids }
}

async function getUserCart({ user_id }) {
  const cart = await redis.hGetAll(`shop:cart:${user_id}`)
  const items = JSON.parse(cart.items)
  const [, history] = await Promise.all([
    fetchApi(`/products/${items[0].product_id}`),
    redis.lRange(`shop:history:${user_id}`, 0, 4),
  ])
  const recent_history = history.map(entry => JSON.parse(entry))
  return { user_id, cart: { items, item_count: items.length, estimated_total: Number(cart.total) }, recent_history }
}

async function checkout({ user_id, items }) {
  const order = JSON.stringify({ order_id: `ORD-${user_id}-${Date.now()}`, items })
  const [{ order_id, total, items_count }, rate_limit_count] = await Promise.all([
    fetchApi('/cart/calculate', { user_id, items }),
    redis.incr(`shop:ratelimit:${user_id}`),
    redis.rPush(`shop:history:${user_id}`, order),
    redis.zIncrBy('shop:popular', 1, `product:${items[0].product_id}`),
  ])
  return { order_id, user_id, total, items_count, rate_limit_count, status: 'confirmed' }
}

const asText = run => async input => JSON.stringify(await run(input))
const [text, number] = [{ type: 'string' }, { type: 'number' }]
const createInput = properties => ({ type: 'object', properties, required: Object.keys(properties) })

/** `input`: JSON Schema. `zod`: the same schema as a function of zod's `z`. `run` returns the text of the result. */
export const SHOP_TOOLS = [
  {
    name: 'search_products',
    description: 'Searches products by category and price range and adds how popular they are.',
    input: createInput({ category: text, min_price: number, max_price: number, limit: number }),
    zod: z => ({ category: z.string(), min_price: z.number(), max_price: z.number(), limit: z.number() }),
    run: asText(searchProducts),
  },
  {
    name: 'get_user_cart',
    description: 'Returns the cart of a user with the latest orders.',
    input: createInput({ user_id: text }),
    zod: z => ({ user_id: z.string() }),
    run: asText(getUserCart),
  },
  {
    name: 'checkout',
    description: 'Computes the total of an order and records it.',
    input: createInput({
      user_id: text,
      items: { type: 'array', items: createInput({ product_id: number, quantity: number }) },
    }),
    zod: z => ({ user_id: z.string(), items: z.array(z.object({ product_id: z.number(), quantity: z.number() })) }),
    run: asText(checkout),
  },
]
