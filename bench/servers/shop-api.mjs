// The HTTP API of the shop workload (TM Dev Lab v2 benchmark of MCP servers): a catalog of 100,000 products.
// Search results are cached, because the API shares two CPUs with the measured server.
import { createServer } from 'node:http'
import { listen } from './tools.mjs'

const CATEGORIES =
  'Electronics Books Clothing Sports Home Garden Toys Food Beauty Automotive Music Movies Games Office Health Pets Travel Tools Jewelry Baby'
const categories = CATEGORIES.split(' ')
const BRANDS = 50

const products = Array.from({ length: 100_000 }, (_, index) => {
  const [id, category] = [index + 1, categories[index % categories.length]]
  const sku = `SKU-${String(id).padStart(6, '0')}`
  return {
    id,
    sku,
    name: `Brand ${index % BRANDS} ${category} item ${id}`,
    category,
    price: 1 + (index % 99_900) / 100,
    stock: index % 501,
    rating: 1 + (index % 40) / 10,
    description: `A product of brand ${index % BRANDS}: ${sku}.`,
  }
})

const searchCache = new Map()

function search(query) {
  const category = query.get('category')
  const [min, max, limit] = ['min_price', 'max_price', 'limit'].map(name => Number(query.get(name)))
  const matching = products
    .filter(product => product.category === category && product.price >= min && product.price <= max)
    .sort((one, other) => one.price - other.price)
  return JSON.stringify({ category, total_found: matching.length, products: matching.slice(0, limit) })
}

function searchCached(query) {
  if (!searchCache.has(query)) searchCache.set(query, search(new URLSearchParams(query)))
  return searchCache.get(query)
}

const cents = value => Math.round(value * 100) / 100

function calculate({ user_id, items }) {
  const subtotal = cents(items.reduce((sum, item) => sum + products[item.product_id - 1].price * item.quantity, 0))
  const total = cents(subtotal * 1.085 - (subtotal >= 100 ? subtotal * 0.1 : -5.99))
  return JSON.stringify({ order_id: `ORD-${user_id}-${items.length}`, user_id, total, items_count: items.length })
}

async function readJson(req) {
  const chunks = []
  for await (const chunk of req) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString())
}

async function handle(req) {
  const [path, query = ''] = req.url.split('?')
  if (path === '/products/search') return searchCached(query)
  if (path === '/cart/calculate') return calculate(await readJson(req))
  return JSON.stringify(products[Number(path.slice('/products/'.length)) - 1])
}

listen(
  createServer(async (req, res) => {
    const body = await handle(req)
    res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }).end(body)
  }),
)
