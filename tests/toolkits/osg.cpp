// OpenSceneGraph: a Drawable that multiplies, between shapes that OpenSceneGraph draws by display lists.
#include <osg/Drawable>
#include <osg/GLExtensions>
#include <osg/Geode>
#include <osg/MatrixTransform>
#include <osg/Shape>
#include <osg/ShapeDrawable>
#include <osgViewer/Viewer>

#include "toolkits/products.hpp"

namespace {

class Multiply : public osg::Drawable {
 public:
  Multiply() {
    setUseDisplayList(false);  // a list would record the product's calls in place of making them
    setSupportsDisplayList(false);
    setCullingActive(false);
  }
  void drawImplementation(osg::RenderInfo&) const override {  // with the context current, on the thread that draws
    if (!products_)
      products_.emplace([](const char* name) { return reinterpret_cast<void (*)()>(osg::getGLExtensionFuncPtr(name)); });
    products_->multiply();
  }
  void releaseGLObjects(osg::State* state) const override {  // the window closes, and its context need not be current
    if (state && products_ && state->getGraphicsContext()->makeCurrent()) products_.reset();
    osg::Drawable::releaseGLObjects(state);
  }
  osg::Object* cloneType() const override { return new Multiply; }
  osg::Object* clone(const osg::CopyOp&) const override { return new Multiply; }

 private:
  mutable std::optional<toolkits::Products> products_;
};

osg::ref_ptr<osg::Geode> drawn(osg::Drawable* drawable, int bin) {
  osg::ref_ptr<osg::Geode> geode = new osg::Geode;
  geode->addDrawable(drawable);
  geode->getOrCreateStateSet()->setRenderBinDetails(bin, "RenderBin");  // in this order
  return geode;
}

void draw_frames() {
  osg::ref_ptr<osg::Group> scene = new osg::Group;
  scene->addChild(drawn(new osg::ShapeDrawable(new osg::Sphere({-1, 0, 0}, 1)), 1));
  scene->addChild(drawn(new Multiply, 2));
  scene->addChild(drawn(new osg::ShapeDrawable(new osg::Box({1.5f, 0, 0}, 1.5f)), 3));
  osgViewer::Viewer viewer;
  viewer.setSceneData(scene);
  viewer.setUpViewInWindow(0, 0, 240, 160);
  viewer.getCamera()->setViewMatrixAsLookAt({0, -6, 2}, {0, 0, 0}, {0, 0, 1});
  viewer.setCameraManipulator(nullptr);
  viewer.realize();
  for (int frame = 0; frame < toolkits::last_frame; ++frame) viewer.frame(0);
  viewer.stopThreading();  // waits for the thread that draws
  toolkits::take_picture();
}  // the viewer closes its window, and its context's objects are released

}  // namespace

int main() {
  draw_frames();
  return toolkits::end();
}
