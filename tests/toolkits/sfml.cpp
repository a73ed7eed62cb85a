// SFML: shapes and a sprite; the sprite's picture is drawn in the context of a RenderTexture.
#include <SFML/Graphics.hpp>

#include "toolkits/products.hpp"

int main() {
  sf::RenderWindow window(sf::VideoMode(240, 160), "SFML", sf::Style::None);
  sf::RenderTexture texture;
  texture.create(64, 64);
  window.setActive();  // creating another target has left its context current
  std::optional<toolkits::Products> products(sf::Context::getFunction);
  sf::CircleShape circle(50);
  circle.setFillColor(sf::Color::Yellow);
  circle.setPosition(20, 20);
  for (int frame = 0; frame < toolkits::last_frame; ++frame) {
    texture.clear(sf::Color::Red);
    texture.draw(sf::CircleShape(20, 3));
    texture.display();
    window.clear(sf::Color::Blue);
    window.draw(circle);  // and this has made the window's context current again
    products->multiply();
    sf::Sprite sprite(texture.getTexture());
    sprite.setPosition(130, 40);
    window.draw(sprite);
    window.display();
  }
  sf::sleep(sf::milliseconds(200));
  toolkits::take_picture();
  window.setActive();
  products.reset();  // before its context
  window.close();
  return toolkits::end();
}
